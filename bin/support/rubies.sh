# Sourced by the programs in bin/: which Rubies there are, and how to run something with one. Needs $root.

# Under another project's `bundle exec`, its bundle must not become ours.
[ -z "${BUNDLE_BIN_PATH-}" ] || unset RUBYOPT RUBYLIB BUNDLE_GEMFILE BUNDLE_BIN_PATH BUNDLER_VERSION BUNDLER_SETUP

say() { printf '%s\n' "${0##*/}: $*" >&2; }
fail() { say "$@"; exit 1; }

# Gem tools write below HOME, and Ruby wants it to be a full path.
case "${HOME-}" in
  /*) [ -d "$HOME" ] && [ -w "$HOME" ] || HOME="$root/.headway/home" ;;
  *) HOME="$root/.headway/home" ;;
esac
export HOME

# Any program named like a Ruby, in the order of PATH; RUBY, if set, comes first.
ruby_candidates() {
  [ -z "${RUBY-}" ] || command -v "$RUBY" || :
  old_ifs=$IFS; IFS=:
  for directory in $PATH; do
    IFS=$old_ifs
    for program in "${directory:-.}"/ruby "${directory:-.}"/ruby[3-9].[0-9] "${directory:-.}"/ruby[3-9].[0-9][0-9] \
                   "${directory:-.}"/ruby[3-9][0-9]; do
      [ -f "$program" ] && [ -x "$program" ] && printf '%s\n' "$program"
    done
  done
  IFS=$old_ifs
}

# Prints version and path of a CRuby, and what it lacks, if anything, with a tab between them: paths have spaces. Any Ruby must be able
# to read this.
ruby_facts() {
  RUBYOPT= "$1" --disable=gems -rrbconfig -e '
    c = RbConfig::CONFIG
    engine = defined?(RUBY_ENGINE) ? RUBY_ENGINE : "ruby"
    headers = [[c["rubyhdrdir"], "ruby.h"], [c["rubyarchhdrdir"], "ruby/config.h"]]
    lacks =
      if engine != "ruby" then "is not CRuby but #{engine}"
      elsif (RUBY_VERSION.split(".").map { |part| part.to_i } <=> [3, 3]) < 0 then "is older than 3.3"
      elsif !headers.all? { |directory, file| directory && File.file?(File.join(directory, file)) }
        "has no headers to build an extension with (ruby-dev, ruby-devel)"
      end
    puts [RUBY_VERSION, File.realpath(File.join(c["bindir"], c["ruby_install_name"] + c["EXEEXT"])), lacks].compact.join("\t")
  ' 2>/dev/null </dev/null
}

all_ruby_facts() {
  ruby_candidates | while IFS= read -r program; do ruby_facts "$program" || :; done |
    sort -s -t. -k1,1nr -k2,2nr | awk '!seen[$0]++'
}

# The paths of the Rubies Headway can be built for, newest first. One of each minor version, the first on PATH: a
# checkout has room for one compiled extension for each.
suitable_rubies() {
  all_ruby_facts | awk -F '\t' 'NF == 2 { split($1, part, "."); if (!seen[part[1] "." part[2]]++) print $2 }'
}

# Points Bundler at this checkout's Gemfile for one Ruby, with everything it writes kept inside the checkout. Each Ruby
# has a lock file of its own: they resolve to different gems, and may be set up at the same time. The many gems that only tests and
# server benchmarks ask for are left out unless $with_test_gems is set.
use_ruby() {
  ruby=$1
  ruby_version=$("$ruby" -e 'print RUBY_VERSION')
  ruby_home="$root/.headway/$ruby_version"
  # Its own: the one on PATH is no Ruby program under rbenv and the like, may be another Ruby's, or isn't there.
  bundle=$("$ruby" -e 'print Gem.bin_path("bundler", "bundle")' 2>/dev/null) || bundle=
  export BUNDLE_GEMFILE="$ruby_home/Gemfile" BUNDLE_PATH="$root/vendor/bundle" BUNDLE_APP_CONFIG="$ruby_home/bundle"
  export BUNDLE_USER_CACHE="$root/.headway/cache" GEM_SPEC_CACHE="$root/.headway/specs"
  export BUNDLE_SILENCE_ROOT_WARNING=1 BUNDLE_DISABLE_VERSION_CHECK=1 BUNDLE_VERSION=system
  if [ -n "${with_test_gems-}" ]; then unset BUNDLE_WITHOUT; else export BUNDLE_WITHOUT=test; fi
}

# Gems' extensions are compiled by the compiler Ruby was built with. One newer than the assembler beside it (gcc 16, binutils 2.40)
# writes tables in a form that can't be read; an older gcc, where there is one, doesn't.
compiler_for_gems() {
  ruby_cc=$("$ruby" -rrbconfig -e 'print RbConfig::CONFIG["CC"]')
  for cc in "$ruby_cc" gcc-15 gcc-14 gcc-13 gcc-12; do
    awk 'BEGIN { printf "const unsigned char t[] = {"; for (i = 0; i < 256; i++) printf "%d,", (i * 37 + 200) % 256; print "};" }' |
      $cc -x c -c -o /dev/null - 2>/dev/null || continue
    [ "$cc" = "$ruby_cc" ] || export MAKEFLAGS="CC=$cc"
    return 0
  done
}
