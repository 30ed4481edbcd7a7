package rest

import (
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/loris-ml/loris/serve/internal/inference"
)

// infer answers a request for inference.
func (c *call) infer() error {
	length, err := jsonLength(c.r)
	if err != nil {
		return err
	}
	b, err := readBody(c.r, c.options.MaxBody, max(length, 0))
	if err != nil {
		return err
	}
	// Infer reads the body until it returns, not longer.
	defer b.release()
	req, err := c.decode(b.data, length)
	if err != nil {
		return err
	}
	req.Model, req.Version = c.model, c.version
	resp, err := c.service.Infer(c.r.Context(), &req.Request)
	if err != nil {
		return err
	}
	defer resp.Release()
	return c.answer(req, resp)
}

// decode reads a body whose JSON has the given length; -1 says that it is all JSON, and
// 0 that it is all data of the only input.
func (c *call) decode(data []byte, length int) (*inferCall, error) {
	switch {
	case length > len(data):
		return nil, badf("%s is %d, but the body has %d bytes", headerJSONLength, length, len(data))
	case length == 0:
		c.req.raw, c.req.binaryOutputs, c.req.Raw = true, true, true
		c.req.Inputs = append(c.req.room.inputs[:0], inference.Tensor{Data: data})
		return &c.req, nil
	case length < 0:
		length = len(data)
	}
	return &c.req, c.decoder.decodeInfer(&c.req, data[:length], data[length:], c.options.NonFinite)
}

var answers = sync.Pool{New: func() any { return new([]byte) }}

// answer writes the JSON of an answer and the bytes of the outputs that come so.
func (c *call) answer(req *inferCall, resp *inference.Response) error {
	pooled := answers.Get().(*[]byte)
	text, err := appendResponse((*pooled)[:0], req, resp, c.options.NonFinite)
	if err != nil {
		answers.Put(pooled)
		return err
	}
	defer func() {
		if cap(text) <= maxPooled {
			*pooled = text
			answers.Put(pooled)
		}
	}()
	parts := append(c.parts[:0], text)
	size := len(text)
	for i := range resp.Outputs {
		if req.binaryOutput(i) && !resp.Outputs[i].Parameters.Shared() {
			parts = append(parts, resp.Outputs[i].Data)
			size += len(resp.Outputs[i].Data)
		}
	}
	h := c.w.Header()
	binary := len(parts) > 1
	if coding := acceptedCoding(c.r, size); coding != "" {
		whole, err := compressed(coding, parts...)
		if err != nil {
			return err
		}
		h.Set("Content-Encoding", coding)
		parts, size = append(c.parts[:0], whole), len(whole)
	}
	lengths := decimals(len(text), size)
	h["Content-Type"] = contentJSON
	if binary {
		h["Content-Type"] = contentBinary
		h[headerJSONLength] = lengths[:1:1]
	}
	h["Content-Length"] = lengths[1:]
	c.w.WriteHeader(http.StatusOK)
	for _, p := range parts {
		if _, err := c.w.Write(p); err != nil {
			return nil // the client has gone
		}
	}
	return nil
}

var (
	contentBinary = []string{"application/octet-stream"}
	contentJSON   = []string{"application/json"}
)

// decimals returns two numbers as text, in one piece of memory.
func decimals(a, b int) *[2]string {
	var room [40]byte
	digits := strconv.AppendInt(room[:0], int64(a), 10)
	n := len(digits)
	both := string(strconv.AppendInt(digits, int64(b), 10))
	return &[2]string{both[:n], both[n:]}
}

// minCompressed is the size from which answers are compressed.
const minCompressed = 1024

// acceptedCoding returns how the client wants an answer of some size compressed; empty
// for not at all.
func acceptedCoding(r *http.Request, size int) string {
	accept := r.Header["Accept-Encoding"]
	if size < minCompressed || len(accept) == 0 {
		return ""
	}
	best := ""
	for _, list := range accept {
		for item := range strings.SplitSeq(list, ",") {
			name, params, _ := strings.Cut(strings.TrimSpace(item), ";")
			q := strings.ReplaceAll(params, " ", "")
			if q == "q=0" || strings.HasPrefix(q, "q=0.0") {
				continue
			}
			switch name {
			case "gzip":
				return name
			case "deflate":
				best = name
			}
		}
	}
	return best
}
