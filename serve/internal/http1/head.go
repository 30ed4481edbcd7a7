package http1

import (
	"bytes"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
)

// head is what stands before the body of a request.
type head struct {
	text    []byte // as it came
	request http.Request
}

// read sets the head from its text, which ends with an empty line; false if it is not plain. The one
// of the last request, which is often the same, is not read again.
func (h *head) read(text []byte, plain func(path string) bool) bool {
	if len(text) > 0 && bytes.Equal(text, h.text) {
		return true
	}
	h.text = append(h.text[:0], text...)
	r, ok := parse(string(text), plain)
	if !ok {
		h.text = h.text[:0]
		return false
	}
	r.RemoteAddr = h.request.RemoteAddr
	h.request = *r
	return true
}

// parse reads a head. What it does not take is net/http's to answer, so it takes nothing of which
// there could be two opinions.
func parse(text string, plain func(path string) bool) (*http.Request, bool) {
	line, rest, _ := strings.Cut(text, "\r\n")
	method, line, _ := strings.Cut(line, " ")
	path, version, _ := strings.Cut(line, " ")
	if version != "HTTP/1.1" || (method != "POST" && method != "GET" && method != "DELETE") || !all(path, inPath) || path[0] != '/' || !plain(path) {
		return nil, false
	}
	r := &http.Request{
		Method: method, URL: &url.URL{Path: path}, RequestURI: path, Proto: version, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, ContentLength: -1,
	}
	for rest != "\r\n" {
		line, rest, _ = strings.Cut(rest, "\r\n")
		name, value, ok := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		if !ok || !all(name, inName) || value != "" && !all(value, inValue) {
			return nil, false
		}
		switch name := textproto.CanonicalMIMEHeaderKey(name); name {
		case "Host":
			if r.Host != "" || !all(value, inHost) {
				return nil, false
			}
			r.Host = value
		case "Content-Length":
			n, err := strconv.ParseUint(value, 10, 62)
			if err != nil || r.ContentLength >= 0 {
				return nil, false
			}
			r.ContentLength = int64(n)
			r.Header[name] = []string{value}
		case "Connection":
			if !strings.EqualFold(value, "keep-alive") {
				return nil, false
			}
			r.Header.Add(name, value)
		case "Transfer-Encoding", "Expect", "Upgrade", "Trailer", "Te", "Http2-Settings", "Pragma":
			return nil, false
		default:
			r.Header.Add(name, value)
		}
	}
	r.ContentLength = max(r.ContentLength, 0)
	return r, r.Host != ""
}

// The characters of parts of a head.
var (
	inName  = letters("!#$%&'*+-.^_`|~")
	inPath  = letters("-._~/!$&'()*+,;=:@")
	inHost  = letters("-._:[]")
	inValue = func() (set [256]bool) {
		for c := ' '; c <= '~'; c++ {
			set[c] = true
		}
		set['\t'] = true
		return set
	}()
)

// letters is the set of letters, digits and others.
func letters(others string) (set [256]bool) {
	for c := range set {
		set[c] = '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || strings.IndexByte(others, byte(c)) >= 0
	}
	return set
}

// all reports whether a text has characters of a set only, and one at least.
func all(text string, set [256]bool) bool {
	for i := range len(text) {
		if !set[text[i]] {
			return false
		}
	}
	return text != ""
}
