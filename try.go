package loris

// Try calls fn and returns an *OpError that it panics with, which is how
// mistakes in building a graph are reported. Other panics go on.
func Try(fn func()) (err error) {
	defer catch(&err)
	fn()
	return nil
}

// TryValue is Try for a function with a result.
func TryValue[T any](fn func() T) (v T, err error) {
	defer catch(&err)
	return fn(), nil
}

func catch(err *error) {
	switch r := recover().(type) {
	case nil:
	case *OpError:
		*err = r
	default:
		panic(r)
	}
}
