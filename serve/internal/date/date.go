// Package date has the Date that answers carry.
package date

import (
	"net/http"
	"sync/atomic"
	"time"
)

// Clock formats the time once a second, as a server's answers of one second carry the same text.
type Clock struct{ last atomic.Pointer[second] }

// second is a time in Unix seconds, and its text.
type second struct {
	unix int64
	text string
}

// Text returns the present time as http.TimeFormat has it.
func (c *Clock) Text() string {
	now := time.Now()
	s := c.last.Load()
	if s == nil || s.unix != now.Unix() {
		s = &second{now.Unix(), now.UTC().Format(http.TimeFormat)}
		c.last.Store(s)
	}
	return s.text
}
