package rest

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/loris-ml/loris/serve/internal/inference"
	"github.com/loris-ml/loris/serve/internal/jsonread"
)

// health answers with both words, since clients look for one of them each.
func (c *call) health(good bool) error {
	status := http.StatusOK
	if !good {
		status = http.StatusServiceUnavailable
	}
	WriteJSON(c.w, status, struct {
		Live  bool `json:"live"`
		Ready bool `json:"ready"`
	}{c.service.Live(), c.service.Ready()})
	return nil
}

func (c *call) live() error  { return c.health(c.service.Live()) }
func (c *call) ready() error { return c.health(c.service.Ready()) }

func (c *call) serverMetadata() error {
	WriteJSON(c.w, http.StatusOK, c.service.Metadata())
	return nil
}

func (c *call) modelMetadata() error {
	m, err := c.service.ModelMetadata(c.model, c.version)
	if err != nil {
		return err
	}
	WriteJSON(c.w, http.StatusOK, m)
	return nil
}

func (c *call) modelReady() error {
	ready, err := c.service.ModelReady(c.model, c.version)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if !ready {
		status = http.StatusServiceUnavailable
	}
	WriteJSON(c.w, status, struct {
		Name  string `json:"name"`
		Ready bool   `json:"ready"`
	}{c.model, ready})
	return nil
}

func (c *call) config() error {
	text, err := c.service.ModelConfig(c.model, c.version)
	if err != nil {
		return err
	}
	WriteJSON(c.w, http.StatusOK, json.RawMessage(text))
	return nil
}

func (c *call) stats() error {
	all, err := c.service.Statistics(c.model, c.version)
	if err != nil {
		return err
	}
	WriteJSON(c.w, http.StatusOK, struct {
		ModelStats []inference.ModelStatistics `json:"model_stats"`
	}{all})
	return nil
}

// maxControl bounds the body of a request that changes something.
const maxControl = 16 << 20

// control reads the body of a request that changes something, which may be empty:
// an object, whose members' values member reads.
func (c *call) control(member func(r *jsonread.Reader, key string) error) error {
	b, err := readBody(c.r, maxControl, 0)
	if err != nil {
		return err
	}
	defer b.release()
	r := jsonread.New(b.data, maxDepth)
	if len(b.data) == 0 {
		return nil
	}
	if err := r.Object(func(key string) error { return member(r, key) }); err != nil {
		return badf("the body: %w", err)
	}
	return r.End()
}

func (c *call) index() error {
	ready := false
	err := c.control(func(r *jsonread.Reader, key string) (err error) {
		if key == "ready" {
			ready, err = r.Bool()
			return err
		}
		_, err = r.Skip()
		return err
	})
	if err != nil {
		return err
	}
	all, err := c.service.Index(ready)
	if err != nil {
		return err
	}
	if all == nil {
		all = []inference.IndexEntry{}
	}
	WriteJSON(c.w, http.StatusOK, all)
	return nil
}

func (c *call) parameters() (p inference.Parameters, err error) {
	err = c.control(func(r *jsonread.Reader, key string) (err error) {
		if key == "parameters" {
			err = r.Object(func(key string) (err error) {
				if p == nil {
					p = inference.Parameters{}
				}
				p[key], err = parameterValue(r, key)
				return err
			})
			return err
		}
		_, err = r.Skip()
		return err
	})
	return p, err
}

func (c *call) load() error {
	p, err := c.parameters()
	if err != nil {
		return err
	}
	if err := c.service.Load(c.r.Context(), c.model, p); err != nil {
		return err
	}
	WriteJSON(c.w, http.StatusOK, struct{}{})
	return nil
}

func (c *call) unload() error {
	p, err := c.parameters()
	if err != nil {
		return err
	}
	if dependents, _ := p["unload_dependents"].(bool); dependents {
		return inference.Errorf(inference.Unimplemented, "unload_dependents: models here depend on no others")
	}
	if err := c.service.Unload(c.r.Context(), c.model); err != nil {
		return err
	}
	WriteJSON(c.w, http.StatusOK, struct{}{})
	return nil
}

// settings answers with the settings of the log or of traces, after changing them if
// the request says so.
func (c *call) settings() error {
	kind := inference.TraceSettings
	if strings.HasSuffix(c.r.URL.Path, "/logging") {
		kind = inference.LogSettings
	}
	var now map[string]any
	var err error
	if c.r.Method != http.MethodPost {
		now, err = c.service.Settings(kind, c.model)
	} else {
		values := map[string]any{}
		err = c.control(func(r *jsonread.Reader, key string) error {
			text, err := r.Skip()
			if err != nil {
				return err
			}
			var v any
			if err := json.Unmarshal(text, &v); err != nil {
				return err
			}
			values[key] = v
			return nil
		})
		if err == nil {
			now, err = c.service.Set(kind, c.model, values)
		}
	}
	if err != nil {
		return err
	}
	WriteJSON(c.w, http.StatusOK, now)
	return nil
}
