package write

type m = map[string]any
