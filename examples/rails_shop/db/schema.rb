# frozen_string_literal: true

ActiveRecord::Schema.verbose = false
ActiveRecord::Schema.define do
  create_table :items do |table|
    table.string :name, null: false
    table.string :maker, null: false
    table.integer :stock, null: false
  end

  create_table :orders do |table|
    table.references :item, null: false
    table.integer :amount, null: false
    table.integer :cents, null: false
    table.binary :label
    table.timestamps
  end
end
