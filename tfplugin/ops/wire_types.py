# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Encodings of tensors in a smaller type, for the transfer between machines.

  'float16'   11 bits of each value; values beyond +-65504 are clipped
  'bfloat16'  8 bits of each value, with the range of float32
  'int8'      a byte for each value, and for each block of 256 values a middle
              and a step, float32: value = middle + code * step, |code| <= 127

Of the bytes of float32 these take 1/2, 1/2 and 1/4 + 8/1024.

The rounding error of int8 is proportional to the largest value of a block. The
caller handles it in one of two ways. It adds the error to the next value that
it sends (error feedback). Or it rounds up in some exchanges and down in others,
so that the mean of the received values is the value (`dither`).

References:
  Seide, Fu, Droppo, Li and Yu. 1-bit stochastic gradient descent and its
  application to data-parallel distributed training of speech DNNs.
  Interspeech 2014 (error feedback).
"""

from __future__ import annotations

from typing import Union

import tensorflow as tf

INT8 = 'int8'
# Types that can be added on the way.
SUM_TYPES = ('float16', 'bfloat16')
TYPES = (*SUM_TYPES, INT8)
BLOCK = 256
# The middle and the step of a block.
_HEADER_BYTES = 8
_MAX_CODE = 127.0
# The least float32 of full precision; smaller ones have no reciprocal.
_LEAST_STEP = 2.0 ** -126
# 633 / 1024 is near the golden ratio: n = 0 ... 1023 gives each dither once,
# and consecutive dithers are far apart. They keep away from 0 and 1, so that
# the least and the largest value of a block arrive unchanged.
_STRIDE, _DITHERS = 633, 1024

Dither = Union[float, tf.Tensor]
Summand = Union[tf.Tensor, tf.IndexedSlices]
Shape = Union[tf.TensorShape, tf.Tensor]


def is_smaller(exchange_dtype: str | None, dtype: tf.DType) -> bool:
  """Returns whether values of `dtype` are sent in a smaller type.

  None as `exchange_dtype` makes nothing smaller.

  Example:
    >>> is_smaller('float16', tf.float32), is_smaller('float16', tf.bfloat16)
    (True, False)
  """
  return exchange_dtype is not None and (
      tf.as_dtype(exchange_dtype).size < dtype.size)


def dither_of(exchange: tf.Tensor) -> tf.Tensor:
  """Returns the fraction of a step, in (0, 1), that an exchange rounds up.

    (exchange * 633 mod 1024 + 1 / 2) / 1024

  `exchange` numbers a worker's exchanges. Over many of them all values
  occur equally often.

  Example:
    >>> [float(dither_of(tf.constant(n))) for n in range(3)]
    [0.00048828125, 0.61865234375, 0.23681640625]
  """
  part = tf.math.floormod(tf.cast(exchange, tf.int64) * _STRIDE, _DITHERS)
  return (tf.cast(part, tf.float32) + 0.5) / _DITHERS


def encode(value: tf.Tensor, exchange_dtype: str, dither: Dither = 0.5,
           keeps_zero: bool = False) -> tf.Tensor:
  """Returns `value` as it is sent: halves of its shape, or a vector of bytes.

  A value that is not finite arrives as not finite; with `'int8'` so does the
  rest of its block. The other arguments are for `'int8'`. value / step +
  `dither` is rounded down, so that 0.5 gives the nearest code. `keeps_zero`
  makes 0 the middle of each block: 0 is then sent as 0. Otherwise the middle is
  between the extremes of the block, and steps are smaller.

  Example:
    >>> sent = encode(tf.constant([[-1.0, 0.3, 1.0]]), 'int8', keeps_zero=True)
    >>> sent.shape[0], decode(sent, [1, 3], tf.float32).numpy().round(4)
    (11, array([[-1.    ,  0.2992,  1.    ]], dtype=float32))
  """
  if exchange_dtype == INT8:
    return _encode_blocks(value, dither, keeps_zero)
  sent = tf.cast(value, exchange_dtype)
  if exchange_dtype != 'float16':
    return sent
  # Values beyond the largest half are rare, and the check of halves takes half
  # as long as clipping every value.
  return tf.cond(tf.reduce_all(tf.math.is_finite(sent)),
                 lambda: tf.identity(sent),
                 lambda: tf.cast(_within_halves(value), exchange_dtype))


def _within_halves(value):
  limit = tf.constant(tf.float16.max, value.dtype)
  return tf.where(tf.math.is_finite(value),
                  tf.clip_by_value(value, -limit, limit), value)


def decode(sent: tf.Tensor, shape: Shape, dtype: tf.DType) -> tf.Tensor:
  """Returns the sent value, rounded, in its `shape` and `dtype`."""
  if sent.dtype != tf.int8:
    return tf.cast(sent, dtype)
  size = _size(shape)
  count, missing = _blocks(size)
  headers = tf.bitcast(tf.reshape(sent[:_HEADER_BYTES * count], [count, 2, 4]),
                       tf.float32)
  codes = sent[_HEADER_BYTES * count:]
  if not _is_zero(missing):
    codes = tf.pad(codes, [[0, missing]])
  codes = tf.reshape(codes, [count, BLOCK])
  value = headers[:, :1] + tf.cast(codes, tf.float32) * headers[:, 1:]
  return tf.cast(tf.reshape(tf.reshape(value, [-1])[:size], shape), dtype)


def encode_summand(value: Summand, exchange_dtype: str) -> Summand:
  """Returns `value` as it is sent to be added up by n processes.

    sum = Q(... Q(Q(value[0]) + Q(value[1])) ... + Q(value[n - 1]))

  Q rounds to `exchange_dtype`, in which every addition is made; the order
  is the order of a ring. Q does not clip, so the sum shows an overflow: it is
  infinite. Rows of `IndexedSlices` are gathered, not added: each is Q(row).

  Example:
    >>> encode_summand(tf.constant([1.0004, 1e5, 1e-8]), 'float16').numpy()
    array([ 1., inf,  0.], dtype=float16)
  """
  return _bitcast_rows(tf.cast(value, exchange_dtype), tf.float16)


def decode_sum(total: Summand, exchange_dtype: str,
               dtype: tf.DType) -> Summand:
  """Returns a sum of results of `encode_summand`, in its own `dtype`."""
  return tf.cast(_bitcast_rows(total, exchange_dtype), dtype)


def _bitcast_rows(value, dtype):
  """Returns rows with other types of 16 bits: no engine gathers bfloat16."""
  if not isinstance(value, tf.IndexedSlices):
    return value
  return tf.IndexedSlices(tf.bitcast(value.values, dtype), value.indices,
                          value.dense_shape)


def _encode_blocks(value, dither, keeps_zero):
  size = _size(value.shape if value.shape.is_fully_defined() else
               tf.shape(value))
  count, missing = _blocks(size)
  blocks = tf.cast(tf.reshape(value, [-1]), tf.float32)
  if not _is_zero(missing):
    # The last block is filled up with its last value.
    blocks = tf.concat([blocks, tf.repeat(blocks[-1:], missing)], 0)
  blocks = tf.reshape(blocks, [count, BLOCK])
  if keeps_zero:
    high = tf.reduce_max(tf.abs(blocks), 1, keepdims=True)
    middle = tf.zeros_like(high)
  else:
    low = tf.reduce_min(blocks, 1, keepdims=True)
    most = tf.reduce_max(blocks, 1, keepdims=True)
    middle = (low + most) / 2
    high = tf.maximum(middle - low, most - middle)
    blocks -= middle
  step = high / _MAX_CODE
  # No value exceeds `high`, so that no code exceeds 127 by more than the
  # rounding that dithers leave room for. Dividing each value takes longer.
  per_step = tf.where(step < _LEAST_STEP, 0.0, 1 / step)
  codes = tf.cast(tf.floor(blocks * per_step + dither), tf.int8)
  headers = tf.bitcast(tf.concat([middle, step], 1), tf.int8)
  return tf.concat([tf.reshape(headers, [-1]),
                    tf.reshape(codes, [-1])[:size]], 0)


def _size(shape):
  """Returns the number of values, as an int where the shape is static."""
  if tf.is_tensor(shape):
    return tf.reduce_prod(shape)
  return tf.TensorShape(shape).num_elements()


def _is_zero(count):
  """Returns whether `count` is known to be 0, which saves a copy."""
  return not tf.is_tensor(count) and count == 0


def _blocks(size):
  """Returns the number of blocks, and of values that the last one lacks."""
  count = (size + BLOCK - 1) // BLOCK
  return count, count * BLOCK - size
