package rest

import (
	"net/http"

	"github.com/loris-ml/loris/serve/internal/inference"
	"github.com/loris-ml/loris/serve/internal/jsonread"
)

// sharedStatus lists a region of shared memory, or all. (A route's name of a model is
// here that of a region.)
func (c *call) sharedStatus() error {
	all, err := c.options.SharedMemory.Status(c.model)
	if err != nil {
		return err
	}
	WriteJSON(c.w, http.StatusOK, all)
	return nil
}

func (c *call) sharedRegister() error {
	var key string
	var offset, size uint64
	err := c.control(func(r *jsonread.Reader, member string) (err error) {
		number := func(n *uint64) error {
			v, err := parameterValue(r, member)
			if i, ok := v.(int64); ok && i >= 0 {
				*n = uint64(i)
			} else if u, ok := v.(uint64); ok {
				*n = u
			} else if err == nil {
				err = badf("%s: expected a number of bytes, got %v", member, v)
			}
			return err
		}
		switch member {
		case "key":
			key, err = r.String()
		case "offset":
			err = number(&offset)
		case "byte_size":
			err = number(&size)
		default:
			err = inference.Errorf(inference.InvalidArgument, "there is no member %q; there are key, offset and byte_size", member)
		}
		return err
	})
	if err == nil {
		err = c.options.SharedMemory.Register(c.model, key, offset, size)
	}
	if err != nil {
		return err
	}
	WriteJSON(c.w, http.StatusOK, struct{}{})
	return nil
}

func (c *call) sharedUnregister() error {
	if err := c.options.SharedMemory.Unregister(c.model); err != nil {
		return err
	}
	WriteJSON(c.w, http.StatusOK, struct{}{})
	return nil
}
