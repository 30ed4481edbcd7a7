package weightsapi

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/loris-ml/loris/serve/internal/inference"
	"github.com/loris-ml/loris/serve/internal/rest"
	"github.com/loris-ml/loris/serve/internal/weights"
)

// maxBody bounds the body of a request that is JSON.
const maxBody = 1 << 20

// Route is a method and a path, with {model}, {version} and {weights} in it.
type Route struct{ Method, Path string }

var handlers = []struct {
	method, path string // below a model
	answer       func(*api, http.ResponseWriter, *http.Request) (any, error)
}{
	{"GET", "weights", (*api).getHTTP},
	{"POST", "weights", (*api).updateHTTP},
	{"POST", "weights/activate", (*api).activateHTTP},
	{"POST", "weights/traffic", (*api).trafficHTTP},
	{"DELETE", "weights/{weights}", (*api).dropHTTP},
}

// Routes lists the paths of this package, for tests of the rules of access.
func Routes() []Route {
	var all []Route
	for _, h := range handlers {
		for _, model := range []string{"/v2/models/{model}/", "/v2/models/{model}/versions/{version}/"} {
			all = append(all, Route{h.method, model + h.path})
		}
	}
	return all
}

func (a *api) registerHTTP(mux *http.ServeMux) {
	for i, r := range Routes() {
		answer := handlers[i/2].answer
		mux.HandleFunc(r.Method+" "+r.Path, func(w http.ResponseWriter, r *http.Request) {
			out, err := a.answer(w, r, answer)
			if err != nil {
				rest.WriteError(w, err)
				return
			}
			rest.WriteJSON(w, http.StatusOK, out)
		})
	}
}

func (a *api) answer(w http.ResponseWriter, r *http.Request, fn func(*api, http.ResponseWriter, *http.Request) (any, error)) (any, error) {
	if a.Authorize != nil {
		if err := a.Authorize(r, inference.ScopeWeights); err != nil {
			return nil, err
		}
	}
	return fn(a, w, r)
}

func place(r *http.Request) (model, version string) {
	return r.PathValue("model"), r.PathValue("version")
}

type setJSON struct {
	Name   string    `json:"name"`
	Bytes  int64     `json:"bytes"`
	Time   time.Time `json:"time"`
	Source string    `json:"source"`
	SHA256 string    `json:"sha256,omitempty"`
}

type shadowJSON struct {
	Compared  uint64 `json:"compared"`
	Failed    uint64 `json:"failed"`
	Different uint64 `json:"different"`
	// MaxAbs is a string for infinity, which JSON lacks.
	MaxAbs any `json:"max_abs_difference"`
}

type trafficJSON struct {
	Canary  string      `json:"canary,omitempty"`
	Percent float64     `json:"canary_percent"`
	Shadow  string      `json:"shadow,omitempty"`
	Report  *shadowJSON `json:"shadow_report,omitempty"`
}

func trafficOf(t weights.Traffic, r weights.ShadowReport) trafficJSON {
	out := trafficJSON{Canary: t.Canary, Percent: t.Percent, Shadow: t.Shadow}
	if t.Shadow != "" || r.Compared > 0 {
		out.Report = &shadowJSON{Compared: r.Compared, Failed: r.Failed, Different: r.Different, MaxAbs: r.MaxAbs}
		if math.IsInf(r.MaxAbs, 0) {
			out.Report.MaxAbs = "Infinity"
		}
	}
	return out
}

func (a *api) getHTTP(_ http.ResponseWriter, r *http.Request) (any, error) {
	model, version := place(r)
	in, err := a.info(r.Context(), model, version)
	if err != nil {
		return nil, err
	}
	out := struct {
		Active    string      `json:"active"`
		Versions  []setJSON   `json:"versions"`
		Constants []constant  `json:"constants"`
		Traffic   trafficJSON `json:"traffic"`
	}{Active: in.active, Constants: in.constants, Traffic: trafficOf(in.traffic, in.report)}
	for _, s := range in.sets {
		out.Versions = append(out.Versions, setJSON{s.Name, s.Bytes, s.Made, s.Source, s.SHA256})
	}
	return out, nil
}

// updateHTTP takes a safetensors file, with parameters in the query, or JSON that
// names one, with parameters beside the name.
func (a *api) updateHTTP(w http.ResponseWriter, r *http.Request) (any, error) {
	p := inference.Parameters{}
	body := r.Body
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch media {
	case "application/octet-stream", "":
		for k, v := range r.URL.Query() {
			p[k] = v[len(v)-1]
		}
	case "application/json":
		var in struct {
			Parameters map[string]any `json:"parameters"`
		}
		if err := readJSON(w, r, &in); err != nil {
			return nil, err
		}
		p = in.Parameters
		if s, _ := p["source"].(string); s == "" {
			return nil, inference.Errorf(inference.InvalidArgument, `parameters must have "source"; a file that is sent itself has the content type application/octet-stream`)
		}
	default:
		return nil, inference.Errorf(inference.InvalidArgument, "content type %q: a file of weights is application/octet-stream, the name of one application/json", media)
	}
	u, source, err := updateOf(p)
	if err != nil {
		return nil, err
	}
	model, version := place(r)
	done, err := a.update(r.Context(), model, version, source, body, u)
	if err != nil {
		return nil, err
	}
	return struct {
		Name   string `json:"weight_version"`
		Active bool   `json:"active"`
		N      int    `json:"updated"`
		Bytes  int64  `json:"bytes"`
		Update int64  `json:"update_ns"`
		Swap   int64  `json:"swap_ns"`
	}{done.Name, done.Active, done.Tensors, done.Bytes, done.Update.Nanoseconds(), done.Swap.Nanoseconds()}, nil
}

// updateOf reads the parameters of an update; flags may be words, as in a query.
func updateOf(p inference.Parameters) (u weights.Update, source string, err error) {
	activate := true
	flags := map[string]*bool{"partial": &u.Partial, "activate": &activate, "check": &u.Check}
	words := map[string]*string{"weight_version": &u.Name, "sha256": &u.SHA256, "source": &source}
	for k, v := range p {
		flag, word := flags[k], words[k]
		text, isText := v.(string)
		switch b, isBool := v.(bool); {
		case word != nil && isText:
			*word = text
		case flag != nil && isBool:
			*flag = b
		case flag != nil && isText:
			if *flag, err = strconv.ParseBool(text); err != nil {
				return u, "", inference.Errorf(inference.InvalidArgument, "parameter %s is %q, not true or false", k, text)
			}
		case flag != nil || word != nil:
			return u, "", inference.Errorf(inference.InvalidArgument, "parameter %s is %v", k, v)
		default:
			return u, "", inference.Errorf(inference.InvalidArgument, "there is no parameter %q; there are activate, check, partial, sha256, source and weight_version", k)
		}
	}
	u.KeepActive = !activate
	return u, source, nil
}

func (a *api) activateHTTP(w http.ResponseWriter, r *http.Request) (any, error) {
	var in struct {
		Name string `json:"weight_version"`
	}
	if err := readJSON(w, r, &in); err != nil {
		return nil, err
	}
	model, version := place(r)
	previous, took, err := a.activate(r.Context(), model, version, in.Name)
	if err != nil {
		return nil, err
	}
	return struct {
		Active   string `json:"active"`
		Previous string `json:"previous"`
		Swap     int64  `json:"swap_ns"`
	}{in.Name, previous, took.Nanoseconds()}, nil
}

func (a *api) trafficHTTP(w http.ResponseWriter, r *http.Request) (any, error) {
	var in struct {
		Canary  string  `json:"canary"`
		Percent float64 `json:"canary_percent"`
		Shadow  string  `json:"shadow"`
	}
	if err := readJSON(w, r, &in); err != nil {
		return nil, err
	}
	model, version := place(r)
	t, report, err := a.setTraffic(r.Context(), model, version, weights.Traffic{Canary: in.Canary, Percent: in.Percent, Shadow: in.Shadow})
	if err != nil {
		return nil, err
	}
	return trafficOf(t, report), nil
}

func (a *api) dropHTTP(_ http.ResponseWriter, r *http.Request) (any, error) {
	model, version := place(r)
	return struct{}{}, a.drop(r.Context(), model, version, r.PathValue("weights"))
}

// readJSON reads a body of known members.
func readJSON(w http.ResponseWriter, r *http.Request, into any) error {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, err = d.Token(); err == io.EOF {
			return nil
		}
		err = errors.New("something follows the object")
	}
	return inference.Errorf(inference.InvalidArgument, "the body: %w", err)
}
