"""What a place costs, and later what is bought: prices, ticket types, checkouts, tickets."""
