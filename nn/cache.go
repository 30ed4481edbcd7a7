package nn

import (
	"github.com/loris-ml/loris"
)

// KVCache keeps the keys and values of the tokens that an attention has seen, so that decoding costs
// the new ones only. Its tensors have fixed sizes: every token is the same graph. Its variables are
// assigned by MultiheadAttention.Decode, so the cache may be part of a function given to
// loris.Compile.
type KVCache struct {
	// Key and Value are [batch, kv heads, capacity, size], Position is the number of tokens so
	// far, i64.
	Key, Value, Position *loris.Variable
	capacity             int
	sliding              bool
}

// NewKVCache returns an empty cache for batch sequences of up to capacity tokens. With sliding a token
// attends to the last capacity tokens, itself among them, and sequences may be of any length;
// without, a token too many is an error of its step that wraps loris.ErrIndex.
func (l *MultiheadAttention) NewKVCache(batch, capacity int, sliding bool) *KVCache {
	positive("KVCache", batch, capacity)
	v := l.OutProj.Weight.Value()
	m := v.Session().With(loris.On(v.Device()), loris.As(v.DType()))
	zeros := func(m loris.Maker, dims ...int) *loris.Variable { return loris.NewVariable(m.Zeros(dims...).Discard()) }
	return &KVCache{Key: zeros(m, batch, l.kvHeads, capacity, l.size), Value: zeros(m, batch, l.kvHeads, capacity, l.size),
		Position: zeros(m.With(loris.As(loris.I64))), capacity: capacity, sliding: sliding}
}

// Reset records an empty cache.
func (c *KVCache) Reset() { c.Position.Assign(c.Position.Value().ZerosLike()) }

// Decode maps the next tokens x [batch, L, dim], L at most the cache's capacity, to [batch, L, dim]: each
// attends to itself and to those before, here and in the cache, to which it adds their keys and
// values. It is what Attend with a causal mask makes of all tokens at once.
func (l *MultiheadAttention) Decode(x *loris.Tensor, c *KVCache) *loris.Tensor {
	k0 := c.Key.Shape()
	if x.Rank() != 3 || x.Dim(0) != k0.Dim(0) || x.Dim(1) > c.capacity || x.Dim(1) < 1 {
		panic(misshapen("KVCache", x, "the input must be [batch, L, dim] for %v, with L from 1 to the capacity", k0))
	}
	n := x.Dim(1)
	q, k, v := l.project(x, x, x)
	at := value(c.Position, x)
	positions := arange(x, n).Add(at)
	query, key, val := l.split(q, l.heads), l.split(k, l.kvHeads), l.split(v, l.kvHeads)
	if l.rotary != 0 {
		query, key = rotate(query, positions, l.rotary), rotate(key, positions, l.rotary)
	}
	slots := positions
	if c.sliding {
		slots = positions.Remainder(c.capacity)
	}
	oldKey, oldVal := value(c.Key, x), value(c.Value, x)
	keys, vals := oldKey.IndexCopy(2, slots, key), oldVal.IndexCopy(2, slots, val)
	mask := positions.Unsqueeze(1).Ge(arange(x, c.capacity))
	attended := [2]*loris.Tensor{keys, vals}
	if c.sliding {
		// The new tokens may take the places of tokens that others of them attend to, so all
		// of both are there. A slot holds the last token before these that belongs there.
		held := at.Sub(1).Sub(at.Sub(1).Sub(arange(x, c.capacity)).Remainder(c.capacity))
		all := loris.Cat([]*loris.Tensor{held, positions})
		age := positions.Unsqueeze(1).Sub(all)
		mask = age.Ge(0).LogicalAnd(age.Lt(c.capacity)).LogicalAnd(all.Ge(0))
		attended = [2]*loris.Tensor{loris.Cat([]*loris.Tensor{oldKey, key}, loris.Dim(2)), loris.Cat([]*loris.Tensor{oldVal, val}, loris.Dim(2))}
	}
	c.Key.Assign(keys)
	c.Value.Assign(vals)
	c.Position.Assign(at.Add(n))
	return l.merge(l.weigh(query, attended[0], attended[1], mask, false))
}

// arange returns 0 to n-1 as i64 on x's device.
func arange(x *loris.Tensor, n int) *loris.Tensor {
	return x.Session().With(loris.On(x.Device()), loris.As(loris.I64)).Arange(0, n, 1)
}

// rotate turns pairs of features of x [*, heads, L, size], of which the first is in the first half, by
// angles that grow with the position: position·base^(-2i/size) for pair i.
func rotate(x, positions *loris.Tensor, base float64) *loris.Tensor {
	half := x.Dim(-1) / 2
	m := x.Session().With(loris.On(x.Device()), loris.As(loris.F32))
	rates := loris.Pow(base, m.Arange(0, half, 1).Mul(-1/float64(half)))
	angles := positions.Cast(loris.F32).Unsqueeze(1).Mul(rates)
	cos, sin := angles.Cos().Cast(x.DType()), angles.Sin().Cast(x.DType())
	parts := x.Chunk(2, loris.Dim(-1))
	a, b := parts[0], parts[1]
	return loris.Cat([]*loris.Tensor{a.Mul(cos).Sub(b.Mul(sin)), b.Mul(cos).Add(a.Mul(sin))}, loris.Dim(-1))
}
