"""The HTTP edge: translate, call one use case, translate back."""
