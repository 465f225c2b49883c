"""Small networks trained with NumPy alone, for the examples of gcompile."""
