# frozen_string_literal: true

# One of several processes that start together fills the database, the others wait for it.
Rails.application.config.after_initialize do
  FileUtils.mkdir_p(Shop::DATA)
  File.open(File.join(Shop::DATA, "lock"), File::CREAT | File::RDWR) do |lock|
    lock.flock(File::LOCK_EX)
    load Rails.root.join("db/schema.rb") unless Item.table_exists?
    load Rails.root.join("db/seeds.rb") if Item.none?
  end
end
