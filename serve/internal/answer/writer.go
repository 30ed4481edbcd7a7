// Package answer looks on while a request is answered.
package answer

import "net/http"

// Writer is an http.ResponseWriter that remembers the status and the size of an answer.
type Writer struct {
	http.ResponseWriter
	// Bytes is how many were written.
	Bytes int64
	// Before is called with the status before it is sent, while headers can be changed; nil is not.
	Before func(status int)

	status int
}

// Status returns the status that was sent, or will be: 200 where the handler says nothing.
func (w *Writer) Status() int {
	if w.status == 0 {
		return http.StatusOK
	}
	return w.status
}

// WriteHeader passes the status on. Those of information, such as 103, are not the answer's.
func (w *Writer) WriteHeader(status int) {
	if w.status == 0 && (status >= http.StatusOK || status == http.StatusSwitchingProtocols) {
		if w.status = status; w.Before != nil {
			w.Before(status)
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write passes bytes on.
func (w *Writer) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	n, err := w.ResponseWriter.Write(p)
	w.Bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController find the writer's other methods.
func (w *Writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush is asked for by gRPC.
func (w *Writer) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }
