package answer

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

// The status is the first one that is not information, and is told once, before it is sent.
func TestWriter(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(http.ResponseWriter)
		status int
		bytes  int64
		told   string
	}{
		{"nothing", func(http.ResponseWriter) {}, 200, 0, "[]"},
		{"bytes alone", func(w http.ResponseWriter) { fmt.Fprint(w, "abc") }, 200, 3, "[200]"},
		{"an error", func(w http.ResponseWriter) { http.Error(w, "no", 404) }, 404, 3, "[404]"},
		{"information first", func(w http.ResponseWriter) { w.WriteHeader(103); w.WriteHeader(201) }, 201, 0, "[201]"},
		{"two", func(w http.ResponseWriter) { w.WriteHeader(400); w.WriteHeader(200) }, 400, 0, "[400]"},
		{"flushed", func(w http.ResponseWriter) { w.(http.Flusher).Flush() }, 200, 0, "[]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var told []int
			rec := httptest.NewRecorder()
			w := &Writer{ResponseWriter: rec, Before: func(status int) {
				rec.Header().Set("X-Told", "yes")
				told = append(told, status)
			}}
			c.answer(w)
			if w.Status() != c.status || w.Bytes != c.bytes || fmt.Sprint(told) != c.told {
				t.Errorf("status %d, %d bytes, told %v; want %d, %d, %s", w.Status(), w.Bytes, told, c.status, c.bytes, c.told)
			}
			if sent := rec.Result().Header.Get("X-Told") != ""; sent != (len(told) > 0) && rec.Code != 103 {
				t.Errorf("the header that was set before the status is sent: %v", sent)
			}
		})
	}
}
