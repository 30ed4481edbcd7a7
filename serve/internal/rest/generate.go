package rest

import (
	"encoding/json"
	"math"
	"net/http"

	"github.com/loris-ml/loris/serve/internal/inference"
	"github.com/loris-ml/loris/serve/internal/jsonread"
)

// generated is an answer, or a piece of one.
type generated struct {
	ID      string `json:"id,omitempty"`
	Model   string `json:"model_name"`
	Version string `json:"model_version,omitempty"`
	Text    string `json:"text_output"`

	FinishReason string         `json:"finish_reason,omitempty"`
	InputTokens  int            `json:"input_tokens,omitempty"`
	OutputTokens int            `json:"output_tokens,omitempty"`
	Parameters   map[string]any `json:"parameters,omitempty"`
}

func (g *generated) end(r *inference.GenerateResponse) {
	g.Version, g.FinishReason, g.InputTokens, g.OutputTokens, g.Parameters = r.Version, r.FinishReason, r.InputTokens, r.OutputTokens, r.Parameters
}

// generate answers with the text that continues the request's.
func (c *call) generate() error {
	r, err := c.generateRequest()
	if err != nil {
		return err
	}
	resp, err := c.options.Generate(c.r.Context(), r, nil)
	if err != nil {
		return err
	}
	out := generated{ID: r.ID, Model: r.Model, Text: resp.Text}
	out.end(resp)
	WriteJSON(c.w, http.StatusOK, out)
	return nil
}

// generateStream answers with pieces of that text as they come, as server-sent events.
// An error after the first piece is an event, too.
func (c *call) generateStream() error {
	r, err := c.generateRequest()
	if err != nil {
		return err
	}
	control := http.NewResponseController(c.w)
	began := false
	event := func(v any) error {
		if !began {
			began = true
			c.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
			c.w.Header().Set("Cache-Control", "no-store")
			c.w.WriteHeader(http.StatusOK)
		}
		text, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if _, err := c.w.Write(append(append([]byte("data: "), text...), "\n\n"...)); err != nil {
			return err
		}
		return control.Flush()
	}
	resp, err := c.options.Generate(c.r.Context(), r, func(piece string) error {
		return event(generated{ID: r.ID, Model: r.Model, Version: r.Version, Text: piece})
	})
	switch {
	case err != nil && !began:
		return err
	case err != nil:
		_ = event(struct { // fails if the client has gone
			Error string `json:"error"`
		}{err.Error()})
	default:
		out := generated{ID: r.ID, Model: r.Model}
		out.end(resp)
		_ = event(out)
	}
	return nil
}

// generateRequest reads a request. What changes how text is drawn stands beside it, or in
// "parameters".
func (c *call) generateRequest() (*inference.GenerateRequest, error) {
	if c.options.Generate == nil {
		return nil, inference.Errorf(inference.Unimplemented, "this server does not generate text")
	}
	r := &inference.GenerateRequest{Model: c.model, Version: c.version}
	var tuned, cold bool
	has := false
	err := c.control(func(j *jsonread.Reader, key string) (err error) {
		switch key {
		case "id":
			r.ID, err = j.String()
		case "text_input":
			has = true
			r.Text, err = j.String()
		case "parameters":
			err = j.Object(func(key string) error { return generateParameter(j, key, r, &tuned, &cold) })
		default:
			err = generateParameter(j, key, r, &tuned, &cold)
		}
		return err
	})
	if err == nil && !has {
		err = badf("the request has no text_input")
	}
	if tuned && !cold {
		r.Temperature = 1
	}
	return r, err
}

// generateParameter reads one parameter. tuned and cold are set by one that only has a
// meaning where tokens are drawn, and by a temperature.
func generateParameter(j *jsonread.Reader, key string, r *inference.GenerateRequest, tuned, cold *bool) (err error) {
	switch key {
	case "max_tokens":
		r.MaxTokens, err = boundedInt(j, key, 1, 1<<20)
	case "top_k":
		*tuned = true
		r.TopK, err = boundedInt(j, key, 0, math.MaxInt32)
	case "top_p":
		*tuned = true
		r.TopP, err = boundedFloat(j, key, 1)
	case "temperature":
		*cold = true
		r.Temperature, err = boundedFloat(j, key, 100)
	case "seed", "random_seed":
		*tuned = true
		var n int
		n, err = boundedInt(j, key, 0, math.MaxInt64)
		seed := uint64(n)
		r.Seed = &seed
	case "stop", "stop_words":
		one := func() error {
			s, err := j.String()
			if err == nil && s == "" {
				err = badf("%s: an empty text", key)
			}
			r.Stop = append(r.Stop, s)
			return err
		}
		if j.Peek() == '[' {
			err = j.Array(one)
		} else {
			err = one()
		}
		if err == nil && len(r.Stop) > maxStops {
			err = badf("%s: at most %d texts", key, maxStops)
		}
	case "exclude_input_in_output":
		var without bool
		without, err = j.Bool()
		r.Echo = !without
	case "stream": // the path says it
		_, err = j.Bool()
	default:
		err = inference.Errorf(inference.InvalidArgument, "there is no parameter %q; there are max_tokens, temperature, top_k, top_p, seed, stop and exclude_input_in_output", key)
	}
	return err
}

// maxStops bounds the texts at which generation ends.
const maxStops = 16

func boundedInt(j *jsonread.Reader, key string, least, most int) (int, error) {
	v, err := parameterValue(j, key)
	if err != nil {
		return 0, err
	}
	n, ok := v.(int64)
	if !ok || n < int64(least) || n > int64(most) {
		return 0, badf("%s: expected a number from %d to %d, got %v", key, least, most, v)
	}
	return int(n), nil
}

func boundedFloat(j *jsonread.Reader, key string, most float64) (float64, error) {
	v, err := parameterValue(j, key)
	if err != nil {
		return 0, err
	}
	f, ok := v.(float64)
	if n, is := v.(int64); is {
		f, ok = float64(n), true
	}
	if !ok || !(f >= 0 && f <= most) {
		return 0, badf("%s: expected a number from 0 to %v, got %v", key, most, v)
	}
	return f, nil
}
