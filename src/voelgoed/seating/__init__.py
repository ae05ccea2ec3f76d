"""What a venue offers: layouts in versions, their zones, rows and seats."""
