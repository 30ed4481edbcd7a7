package loris

// Try calls fn and returns the *OpError that it panics with, as mistakes in building a
// graph do. It does not recover other panics.
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
