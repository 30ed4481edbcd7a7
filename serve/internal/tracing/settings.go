package tracing

import (
	"strconv"

	"github.com/loris-ml/loris/serve/internal/inference"
)

// settings are those of Triton's trace extension that have a meaning here.
type settings struct {
	on    bool  // trace_level TIMESTAMPS, or OFF
	rate  int64 // one of so many requests
	count int64 // how many are left; -1 for no bound
}

// untraced are the settings of a server that sends traces nowhere.
var untraced = settings{rate: 1}

// override are the settings of a model; nil for those of all.
type override struct {
	on          *bool
	rate, count *int64
}

func (o override) over(s settings) settings {
	if o.on != nil {
		s.on = *o.on
	}
	if o.rate != nil {
		s.rate = *o.rate
	}
	if o.count != nil {
		s.count = *o.count
	}
	return s
}

func (s settings) values() map[string]any {
	level := "OFF"
	if s.on {
		level = "TIMESTAMPS"
	}
	return map[string]any{
		"trace_level": []string{level}, "trace_rate": strconv.FormatInt(s.rate, 10), "trace_count": strconv.FormatInt(s.count, 10),
		"log_frequency": "0", "trace_file": "", "trace_mode": "opentelemetry",
	}
}

// Settings returns the settings of a model, or of all for "", by Triton's names.
func (t *Tracer) Settings(model string) map[string]any {
	if t == nil {
		return untraced.values()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.models[model].over(t.global).values()
}

// Set changes settings of a model, or of all for "". A nil value takes back what was set
// for a model, or sets that of all to what the server was started with. All are changed or, with an
// *inference.Error, none.
func (t *Tracer) Set(model string, values map[string]any) error {
	var o override
	cleared := map[string]bool{}
	for key, value := range values {
		if err := o.set(key, value); err != nil {
			return err
		}
		cleared[key] = value == nil
	}
	if t == nil {
		if o.over(untraced) != untraced {
			return inference.Errorf(inference.Unimplemented, "the server sends traces nowhere; start it with --otlp URL")
		}
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if model == "" {
		if cleared["trace_level"] {
			t.global.on = t.initial.on
		}
		if cleared["trace_rate"] {
			t.global.rate = t.initial.rate
		}
		if cleared["trace_count"] {
			t.global.count = t.initial.count
		}
		t.global = o.over(t.global)
		return nil
	}
	now := t.models[model]
	if o.on != nil || cleared["trace_level"] {
		now.on = o.on
	}
	if o.rate != nil || cleared["trace_rate"] {
		now.rate = o.rate
	}
	if o.count != nil || cleared["trace_count"] {
		now.count = o.count
	}
	t.models[model] = now
	return nil
}

// set reads one setting; one that has no meaning here may have the value it has.
func (o *override) set(key string, value any) error {
	text, list := text(value)
	bad := func(expected string) error {
		return inference.Errorf(inference.InvalidArgument, "setting %s: expected %s, got %v", key, expected, value)
	}
	switch key {
	case "trace_level":
		if value == nil {
			return nil
		}
		on := false
		for _, level := range list {
			switch level {
			case "TIMESTAMPS":
				on = true
			case "OFF":
			case "TENSORS":
				return inference.Errorf(inference.Unimplemented, "setting trace_level: TENSORS is not supported; there are TIMESTAMPS and OFF")
			default:
				return bad("TIMESTAMPS or OFF")
			}
		}
		if len(list) == 0 || (on && len(list) > 1) {
			return bad("TIMESTAMPS or OFF")
		}
		o.on = &on
	case "trace_rate", "trace_count":
		if value == nil {
			return nil
		}
		least, field := int64(1), &o.rate
		if key == "trace_count" {
			least, field = -1, &o.count
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < least {
			return bad("a number from " + strconv.FormatInt(least, 10) + " on")
		}
		*field = &n
	case "log_frequency", "trace_file", "trace_mode":
		is := settings{}.values()[key]
		if value != nil && text != is {
			return inference.Errorf(inference.Unimplemented, "setting %s cannot be changed: traces go to a collector, as the server was started", key)
		}
	default:
		return inference.Errorf(inference.InvalidArgument, "there is no setting %q", key)
	}
	return nil
}

// text returns a value as text, and as a list of texts.
func text(value any) (string, []string) {
	switch v := value.(type) {
	case string:
		return v, []string{v}
	case float64:
		s := strconv.FormatFloat(v, 'f', -1, 64)
		return s, []string{s}
	case []string:
		if len(v) == 1 {
			return v[0], v
		}
		return "", v
	case []any:
		var all []string
		for _, x := range v {
			s, _ := x.(string)
			all = append(all, s)
		}
		if len(all) == 1 {
			return all[0], all
		}
		return "", all
	}
	return "", nil
}
