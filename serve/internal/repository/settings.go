package repository

import (
	"log/slog"
	"strconv"

	"github.com/loris-ml/loris/serve/internal/inference"
)

// Settings returns the settings of the log, or of traces.
func (r *Repository) Settings(kind inference.SettingsKind, name string) (map[string]any, error) {
	if name != "" {
		if _, err := r.lookup(name, ""); err != nil {
			return nil, err
		}
	}
	if kind == inference.TraceSettings {
		return r.options.Tracer.Settings(name), nil
	}
	level := slog.LevelInfo
	if r.options.Level != nil {
		level = r.options.Level.Level()
	}
	verbose := int64(0)
	if level < slog.LevelInfo {
		verbose = 1
	}
	return map[string]any{
		"log_file": "", "log_info": level <= slog.LevelInfo, "log_warning": level <= slog.LevelWarn, "log_error": level <= slog.LevelError,
		"log_verbose_level": verbose, "log_format": "default",
	}, nil
}

// Set changes what the log has, or which requests are traced.
func (r *Repository) Set(kind inference.SettingsKind, name string, values map[string]any) (map[string]any, error) {
	now, err := r.Settings(kind, name)
	if err != nil {
		return nil, err
	}
	if kind == inference.TraceSettings {
		if err := r.options.Tracer.Set(name, values); err != nil {
			return nil, err
		}
		return r.Settings(kind, name)
	}
	want := map[string]bool{}
	for key, value := range values {
		was, known := now[key]
		_, is := was.(bool)
		b, boolean := value.(bool)
		n, number := asNumber(value)
		switch {
		case !known:
			return nil, badf("there is no setting %q", key)
		case is && boolean && r.options.Level != nil:
			want[key] = b
		case key == "log_verbose_level" && number && r.options.Level != nil:
			want[key] = n > 0
		case was != value:
			return nil, inference.Errorf(inference.Unimplemented, "the setting %q cannot be changed", key)
		}
	}
	if len(want) > 0 {
		if err := r.setLevel(want); err != nil {
			return nil, err
		}
	}
	return r.Settings(kind, name)
}

// levels are the settings of the log, each of which has all that those after it have.
var levels = []struct {
	name  string
	level slog.Level
}{{"log_verbose_level", slog.LevelDebug}, {"log_info", slog.LevelInfo}, {"log_warning", slog.LevelWarn}, {"log_error", slog.LevelError}}

// setLevel changes the log's level as little as the settings ask for: what is turned off turns off
// what is less severe, and what is turned on what is more severe on.
func (r *Repository) setLevel(want map[string]bool) error {
	least, most := 0, len(levels) // of the first one that is on
	at := most
	for i, l := range levels {
		if at == len(levels) && r.options.Level.Level() <= l.level {
			at = i
		}
		if on, asked := want[l.name]; on && i < most {
			most = i
		} else if asked && !on {
			least = i + 1
		}
	}
	if least > most {
		return badf("%s cannot be on while %s is off", levels[most].name, levels[least-1].name)
	}
	level := slog.LevelError + 4 // nothing has it
	if at = min(max(at, least), most); at < len(levels) {
		level = levels[at].level
	}
	r.options.Level.Set(level)
	return nil
}

func asNumber(v any) (int64, bool) {
	switch v := v.(type) {
	case float64:
		return int64(v), true
	case uint32:
		return int64(v), true
	case int64:
		return v, true
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		return n, err == nil
	}
	return 0, false
}
