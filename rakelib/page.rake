# frozen_string_literal: true

desc "Build lib/headway/report/page.html from report/src (needs npm; the built page is committed)"
task :page do
  Bundler.with_unbundled_env do
    sh "npm", "install", "--silent", "--prefix", "report" unless File.directory?("report/node_modules/esbuild")
    sh "npm", "run", "--silent", "--prefix", "report", "build"
  end
end
