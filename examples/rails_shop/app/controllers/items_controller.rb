# frozen_string_literal: true

class ItemsController < ApplicationController
  def index
    @items = Item.order(:name).limit(20)
    respond_to do |format|
      format.html
      format.json { render json: @items }
    end
  end

  # A light request: a few short queries, and a wait for somebody else.
  def show
    @item = Item.find(params[:id])
    @sold = @item.orders.sum(:amount)
    @others = @item.others.to_a
    @cents = @item.price
    respond_to do |format|
      format.html
      format.json { render json: { **@item.as_json, cents: @cents, sold: @sold, others: @others.map(&:name) } }
    end
  end

  # A heavy one: it computes.
  def catalogue
    send_data Picture.catalogue(Item.order(:maker, :name).limit(24).to_a), type: "image/png", disposition: "inline"
  end
end
