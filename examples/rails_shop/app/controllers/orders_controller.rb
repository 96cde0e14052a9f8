# frozen_string_literal: true

class OrdersController < ApplicationController
  def create
    item = Item.find(params[:item_id])
    order = item.orders.create!(amount: params[:amount], cents: item.price * params[:amount].to_i)
    LabelJob.perform_later(order)
    respond_to do |format|
      format.html { redirect_to order_path(order), status: :see_other }
      format.json { render json: summary(order), status: :created }
    end
  end

  def show
    @order = Order.includes(:item).find(params[:id])
    respond_to do |format|
      format.html
      format.json { render json: summary(@order) }
    end
  end

  def label
    label = Order.find(params[:id]).label
    label ? send_data(label, type: "image/png", disposition: "inline") : head(:not_found)
  end

  private

  def summary(order) = { id: order.id, item: order.item.name, amount: order.amount, cents: order.cents, labelled: !order.label.nil? }
end
