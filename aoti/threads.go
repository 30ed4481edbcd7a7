package aoti

// setHostThreads bounds the threads of parallel code inside libraries.
func setHostThreads(n int) {}
