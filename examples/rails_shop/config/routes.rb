# frozen_string_literal: true

Rails.application.routes.draw do
  root "items#index"
  resources :items, only: %i[index show]
  resources :orders, only: %i[create show] do
    get :label, on: :member
  end
  get "catalogue.png", to: "items#catalogue", as: :catalogue
end
