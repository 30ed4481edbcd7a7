package http1

import (
	"net"
	"net/http"
	"strconv"
	"strings"
)

const (
	// keptAnswer is what is collected of an answer before it is sent, and what of the memory for that
	// stays with a connection.
	keptAnswer = 64 << 10
	// ownWrite is the size from which a piece of an answer is sent from where it is.
	ownWrite = 8 << 10
)

// answer is the http.ResponseWriter of a connection, for one request after another. It sends nothing
// before the handler has returned, unless it is much.
type answer struct {
	conn   *conn
	header http.Header
	out    []byte // the head, and what is there of the body
	late   []byte // the body, while its length is not known
	status int    // 0 before WriteHeader
	length int64  // Content-Length; negative where the handler does not say it
	wrote  int64
	typed  bool // the handler says what the body is
	ended  bool // out has the whole head
	close  bool // the connection ends with this answer
	err    error
}

func (a *answer) begin() {
	clear(a.header)
	a.out, a.late, a.status, a.length, a.wrote = a.out[:0], a.late[:0], 0, -1, 0
	a.typed, a.ended, a.close, a.err = false, false, false, nil
}

// Header returns the fields that will be sent.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader writes the head, but for its end, and the length where that is not known yet. Statuses of information
// are not sent.
func (a *answer) WriteHeader(status int) {
	if a.status != 0 || status < http.StatusOK {
		return
	}
	a.status = status
	c := a.conn
	a.close = c.server.stopping.Load() || c.left > maxDiscard || strings.EqualFold(a.header.Get("Connection"), "close")
	b := append(a.out[:0], "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(append(append(b, ' '), http.StatusText(status)...), "\r\nDate: "...)
	b = append(append(b, c.server.clock.Text()...), "\r\n"...)
	for name, values := range a.header {
		switch name {
		case "Date", "Connection", "Transfer-Encoding":
			continue
		case "Content-Type":
			a.typed = true
		case "Content-Length":
			n, err := strconv.ParseUint(values[0], 10, 62)
			if err != nil {
				continue // as if it were not said
			}
			a.length = int64(n)
		}
		for _, v := range values {
			b = append(append(append(b, name...), ": "...), oneLine(v)...)
			b = append(b, "\r\n"...)
		}
	}
	if a.close {
		b = append(b, "Connection: close\r\n"...)
	}
	a.out = b
}

// endHead ends the head before the first bytes of the body, of which it says what they are unless the
// handler has.
func (a *answer) endHead(first []byte) {
	if !a.typed && len(first) > 0 {
		a.out = append(append(append(a.out, "Content-Type: "...), http.DetectContentType(first)...), "\r\n"...)
	}
	a.out = append(a.out, "\r\n"...)
	a.ended = true
}

// hasBody reports whether an answer of the status has a body.
func (a *answer) hasBody() bool {
	return a.status != http.StatusNoContent && a.status != http.StatusNotModified
}

// Write adds to the body.
func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	switch {
	case a.err != nil:
		return 0, a.err
	case !a.hasBody():
		return 0, http.ErrBodyNotAllowed
	case a.length < 0:
		a.late = append(a.late, p...)
		return len(p), nil
	case a.wrote+int64(len(p)) > a.length:
		return 0, http.ErrContentLength
	}
	if !a.ended {
		a.endHead(p)
	}
	a.wrote += int64(len(p))
	if len(p) < ownWrite {
		if a.out = append(a.out, p...); len(a.out) >= keptAnswer {
			a.send(a.out)
			a.out = a.out[:0]
		}
	} else {
		a.send(a.out, p)
		a.out = a.out[:0]
	}
	return len(p), a.err
}

func (a *answer) send(parts ...[]byte) {
	if a.err != nil {
		return
	}
	if len(parts) == 1 {
		_, a.err = a.conn.Conn.Write(parts[0])
		return
	}
	all := net.Buffers(parts)
	_, a.err = all.WriteTo(a.conn.Conn)
}

// end sends what is left, and reports whether the answer is whole.
func (a *answer) end() bool {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	if a.length < 0 && a.hasBody() {
		a.out = append(strconv.AppendInt(append(a.out, "Content-Length: "...), int64(len(a.late)), 10), "\r\n"...)
	}
	if !a.ended {
		a.endHead(a.late)
		a.out = append(a.out, a.late...)
	}
	if len(a.out) > 0 {
		a.send(a.out)
	}
	if cap(a.out) > keptAnswer {
		a.out = nil
	}
	if cap(a.late) > keptAnswer {
		a.late = nil
	}
	return a.err == nil && (a.wrote >= a.length || !a.hasBody())
}

// oneLine is a header's value without what would end its line.
func oneLine(v string) string {
	if strings.ContainsAny(v, "\r\n") {
		return strings.NewReplacer("\r", " ", "\n", " ").Replace(v)
	}
	return v
}
