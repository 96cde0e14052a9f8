# Sourced by bin/setup: installs Ruby on a Debian whose own is too old, from Debian's newer suites. Needs say and fail.

apt_file=headway-newer
# These first: apt finds no solution for all of them in one step. The assembler must be as new as the compiler, which
# its packages don't ask for.
apt_base="libc6 libc6-dev libgmp-dev libssl3t64 libssl-dev"
apt_rubies="ruby3.4/experimental ruby3.4-dev/experimental libruby3.4/experimental ruby3.3 ruby3.3-dev ruby-rubygems \
ruby-bundler gcc binutils make"
apt_options="-y --no-install-recommends -t sid -o Dpkg::Options::=--force-overwrite"

is_debian() {
  [ -r /etc/os-release ] && [ "$(. /etc/os-release; printf %s "${ID-}")" = debian ] && command -v apt-get >/dev/null
}

# The mirror this machine already uses for Debian itself, whichever form its sources are written in: apt reads them.
# A third party may use Debian's suite names too. What apt knows to come from Debian is preferred; before the first
# `apt-get update` it knows nothing, and an address that ends as Debian's do is the best guess.
debian_mirror() {
  { debian_sources_in_use; debian_sources_in_use --no-release-info; } |
    awk '$NF == "main" && $2 !~ /^cdrom:/ && $3 !~ /security|updates|backports|\// {
           if ($1 == "Debian" && !known) known = $2
           if ($2 ~ /\/debian\/([0-9TZ]+\/)?$/ && !likely) likely = $2
           if (!any) any = $2
         }
         END { print known ? known : likely ? likely : any }'
}

debian_sources_in_use() {
  apt-get indextargets "$@" --format '$(ORIGIN) $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 2>/dev/null
}

debian_keyring() {
  for keyring in /usr/share/keyrings/debian-archive-keyring.gpg /usr/share/keyrings/debian-archive-keyring.pgp; do
    if [ -r "$keyring" ]; then echo "Signed-By: $keyring"; return; fi
  done
}

# deb-src: CRuby's own tests come with its source package.
debian_sources() {
  printf 'Types: deb deb-src\nURIs: %s\nSuites: sid experimental\nComponents: main\n' "$1"
  debian_keyring
}

# Below 100: nothing that is installed is ever upgraded from these suites by itself.
debian_preferences() {
  printf 'Package: *\nPin: release n=sid\nPin-Priority: 50\n\nPackage: *\nPin: release n=rc-buggy\nPin-Priority: 40\n'
}

debian_plan() {
  cat >&2 <<PLAN
No CRuby 3.3 or newer is here. On this Debian, Ruby 3.4 and 3.3 can be installed from its newer suites:
  1. write /etc/apt/sources.list.d/$apt_file.sources (sid and experimental, from $1)
  2. write /etc/apt/preferences.d/$apt_file (priorities 50 and 40: nothing else is upgraded from them)
  3. apt-get update
  4. apt-get install $apt_options
       $apt_base
  5. apt-get install $apt_options
       $apt_rubies
Steps 4 and 5 bring newer libc6 and libssl with them. To undo: delete the two files, apt-get purge the Rubies.
PLAN
}

debian_update() {
  log=$(apt-get update 2>&1) && return
  case "$log" in
    # A mirror that lags, or a clock that is ahead: the signature is still checked.
    *expired* | *"not valid"* | *"no longer valid"*) apt-get -o Acquire::Check-Valid-Until=false update ;;
    *) printf '%s\n' "$log" >&2; say "apt-get update had errors; trying with what it has" ;;
  esac
}

install_debian_rubies() {
  mirror=$(debian_mirror)
  [ -n "$mirror" ] || fail "apt has no Debian mirror configured (sources.list or sources.list.d): add one and run this again"
  debian_plan "$mirror"
  if [ -n "$dry_run" ]; then
    say "a dry run: nothing is done; the two files would be"
    debian_sources "$mirror"; echo; debian_preferences
    exit 0
  fi
  debian_sources "$mirror" >"/etc/apt/sources.list.d/$apt_file.sources"
  debian_preferences >"/etc/apt/preferences.d/$apt_file"
  debian_update
  export DEBIAN_FRONTEND=noninteractive
  say "installing; half a minute with a fast mirror"
  # The lists are split into words on purpose.
  apt_install $apt_options $apt_base || fail "apt could not install $apt_base"
  apt_install $apt_options $apt_rubies || fail "apt could not install Ruby"
}

# Thousands of lines, which matter only when it fails.
apt_install() {
  log=$(apt-get install -o DPkg::Lock::Timeout=600 "$@" </dev/null 2>&1) || { printf '%s\n' "$log" >&2; return 1; }
}

# What tests ask for besides gems. Without promtool, Redis and PostgreSQL they fail, and say what to install; without a browser, protoc
# and patch some are skipped, without libhdr-histogram the core's histograms are compared with nobody's, and without libraries of 32 bits
# the core is tried with 64 alone.
install_debian_tools() {
  if ! is_debian || [ "$(id -u)" != 0 ]; then return; fi
  missing=
  for tool in promtool:prometheus redis-server:redis-server chromium:chromium protoc:protobuf-compiler patch:patch; do
    command -v "${tool%:*}" >/dev/null || missing="$missing ${tool#*:}"
  done
  ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$missing postgresql"
  ls /usr/lib/*/libhdr_histogram.so >/dev/null 2>&1 || missing="$missing libhdr-histogram-dev"
  narrow=$(missing_narrow_libraries)
  [ -n "$missing$narrow" ] || return 0
  debian_update
  export DEBIAN_FRONTEND=noninteractive
  stable="-y --no-install-recommends"
  newer=$stable
  [ ! -f "/etc/apt/preferences.d/$apt_file" ] || newer=$apt_options
  for package in $missing; do # one by one: what a mirror lacks keeps none of the others away
    say "installing $package, which tests ask for"
    # Something it depends on may have to be as new as libc6 (PostgreSQL's locales has).
    apt_install $stable "$package" 2>/dev/null || apt_install $newer "$package" || say "apt could not install $package"
  done
  [ -n "$narrow" ] || return 0
  say "installing $narrow, which tests ask for"
  # The compiler is from the newer suites, too.
  apt_install $newer $narrow || say "apt could not install $narrow"
}

# Not gcc-multilib, for which apt would take cross compilers away.
missing_narrow_libraries() {
  [ "$(dpkg --print-architecture)" = amd64 ] && command -v gcc >/dev/null || return 0
  echo 'int main(void) { return 0; }' | gcc -m32 -x c -o /dev/null - 2>/dev/null ||
    echo "libc6-dev-i386 lib32gcc-$(gcc -dumpversion | sed 's/[.].*//')-dev"
}
