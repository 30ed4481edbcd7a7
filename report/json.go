package report

import "encoding/json"

// MarshalJSON writes the fields under their names, durations in nanoseconds and DiskError as a
// string: what expvar publishes of a session, and loris top reads.
func (r Report) MarshalJSON() ([]byte, error) {
	type fields Report // without methods
	out := struct {
		fields
		DiskError string `json:",omitempty"`
	}{fields: fields(r)}
	if r.DiskError != nil {
		out.DiskError = r.DiskError.Error()
	}
	return json.Marshal(out)
}
