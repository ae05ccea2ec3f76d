"""What the product says about itself: logs now, metrics beside them."""
