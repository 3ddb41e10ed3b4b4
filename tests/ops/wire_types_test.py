# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What arrives of a value that is sent in a smaller type."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.ops import wire_types

tf1 = tf.compat.v1


def _there(value, exchange_dtype, shape=None, **kwargs):
  """The bytes that are sent for `value`, and what arrives of it."""
  with tf.Graph().as_default(), tf1.Session() as session:
    given = tf1.placeholder(value.dtype, shape or value.shape)
    sent = wire_types.encode(given, exchange_dtype, **kwargs)
    arrives = wire_types.decode(
        sent, given.shape if shape is None else tf.shape(given), given.dtype)
    sent, arrives = session.run([sent, arrives], {given: value})
  assert arrives.shape == value.shape and arrives.dtype == value.dtype
  return sent.nbytes, arrives


@pytest.mark.parametrize('dtype, bits', [('float16', 11), ('bfloat16', 8)])
def test_a_half_keeps_its_bits(behavior, dtype, bits):
  del behavior
  value = np.random.RandomState(0).randn(70, 3).astype(np.float32)
  size, arrives = _there(value, dtype)
  assert size == value.nbytes / 2
  # To the nearest: half of the last bit.
  assert (np.abs(arrives - value) <= 2.0 ** -bits * np.abs(value)).all()
  assert (arrives != value).any()


def test_what_is_too_large_for_float16_stays_there_and_no_finite_is_lost(
    behavior):
  del behavior
  value = np.array([1e6, -1e30, np.inf, -np.inf, np.nan], np.float32)
  np.testing.assert_array_equal(
      _there(value, 'float16')[1], [65504, -65504, np.inf, -np.inf, np.nan])


@pytest.mark.parametrize('size', [0, 1, 255, 256, 257, 1000])
@pytest.mark.parametrize('is_known', [True, False])
@pytest.mark.parametrize('keeps_zero', [True, False])
def test_a_block_of_int8_is_exact_to_half_a_step(
    behavior, size, is_known, keeps_zero):
  del behavior
  # A mean of 3, as of the scale of a normalization; blocks of other sizes.
  value = 3 + np.random.RandomState(0).randn(size).astype(np.float32)
  value[256:] *= 100
  sent, arrives = _there(value, 'int8', None if is_known else [None],
                         keeps_zero=keeps_zero)
  assert sent == size + 8 * -(-size // 256)
  for start in range(0, size, 256):
    block = value[start:start + 256]
    reach = (np.abs(block).max() if keeps_zero else
             (block.max() - block.min()) / 2)
    error = np.abs(arrives[start:start + 256] - block).max()
    # To rounding of float32.
    assert error <= reach / 127 / 2 + 1e-6 * np.abs(block).max()
    assert block.size == 1 or error > reach / 127 / 4


def test_a_large_variable_is_a_quarter_and_the_headers():
  size, _ = _there(np.ones([512, 64], np.float32), 'int8')
  assert size == 512 * 64 * (1 + 8 / 256)


def test_zeros_and_equal_values_arrive_as_they_are():
  value = np.array([0.0, 0.1, -0.7, 0.0], np.float32)
  _, arrives = _there(value, 'int8', keeps_zero=True)
  assert arrives[0] == arrives[3] == 0
  for same in (0.0, 0.1, -3e30):
    value = np.full([300], same, np.float32)
    for keeps_zero in (True, False):
      _, arrives = _there(value, 'int8', keeps_zero=keeps_zero)
      np.testing.assert_allclose(arrives, value, rtol=1e-6)


@pytest.mark.parametrize('dtype', [np.float16, np.float64])
def test_other_types_of_variables(dtype):
  value = np.linspace(-1, 1, 255).astype(dtype)
  sent, arrives = _there(value, 'int8')
  assert sent == 255 + 8
  # Codes -127 ... 127 are these values.
  np.testing.assert_allclose(arrives, value, atol=1e-3)


@pytest.mark.parametrize('bad', [np.nan, np.inf])
def test_what_is_not_finite_is_seen_at_the_other_end(bad):
  value = np.ones([300], np.float32)
  value[7] = bad
  _, arrives = _there(value, 'int8')
  assert not np.isfinite(arrives[7])
  np.testing.assert_array_equal(arrives[256:], 1)


def test_dithered_communications_mean_the_value():
  """With steps of 1, -127 ... 127, and a value of 10.3: 10 or 11."""
  value = np.array([-127.0, 10.3, 127.0], np.float32)
  with tf.Graph().as_default(), tf1.Session() as session:
    number = tf1.placeholder(tf.int64, [])
    arrives = wire_types.decode(
        wire_types.encode(tf.constant(value), 'int8',
                          wire_types.dither_of(number)), [3], tf.float32)
    seen = np.array([session.run(arrives, {number: n}) for n in range(200)])
  np.testing.assert_array_equal(seen[:, [0, 2]], [[-127, 127]] * 200)
  assert set(seen[:, 1]) == {10.0, 11.0}
  # Multiples of the golden ratio leave no gap of more than 2 / n.
  assert abs(seen[:, 1].mean() - 10.3) < 2 / 200


def test_dither_keeps_away_from_the_ends_for_every_count():
  numbers = np.concatenate([np.arange(1024), [1 << 40, (1 << 53) - 1]])
  with tf.Graph().as_default(), tf1.Session() as session:
    dithers = session.run(wire_types.dither_of(tf.constant(numbers)))
  assert dithers.min() == 1 / 2048 and dithers.max() == 1 - 1 / 2048
  assert len(set(dithers[:1024])) == 1024 and dithers[:1024].mean() == 0.5


@pytest.mark.parametrize('dither', [1 / 2048, 0.5, 1 - 1 / 2048])
def test_the_ends_of_a_block_arrive_whatever_the_dither(dither):
  random = np.random.RandomState(0)
  for _ in range(20):
    value = (random.randn() + random.randn(256)).astype(np.float32)
    _, arrives = _there(value, 'int8', dither=dither)
    for end in (np.argmin(value), np.argmax(value)):
      np.testing.assert_allclose(arrives[end], value[end], atol=1e-6)


@pytest.mark.parametrize('dtype', ['float16', 'bfloat16'])
@pytest.mark.parametrize('own', [tf.float32, tf.float64])
def test_a_summand_is_rounded_and_not_clipped(dtype, own):
  half = tf.as_dtype(dtype).as_numpy_dtype
  value = np.array([[1.0004883, 3e-6, 65504.0], [7e4, -7e4, 1e-8]])
  with tf.Graph().as_default(), tf1.Session() as session:
    sent = wire_types.encode_summand(tf.constant(value, own), dtype)
    assert sent.dtype == dtype
    total = wire_types.decode_sum(sent, dtype, own)
    assert total.dtype == own
    found = session.run(total)
  with np.errstate(over='ignore'):
    np.testing.assert_array_equal(
        found, value.astype(np.float32).astype(half).astype(np.float64))
  assert np.isinf(found[1, :2]).all() == (dtype == 'float16')


@pytest.mark.parametrize('dtype', ['float16', 'bfloat16'])
def test_rows_are_sent_as_halves(dtype):
  """Engines gather these; the bits of a bfloat16 are sent as theirs."""
  half = tf.as_dtype(dtype).as_numpy_dtype
  values = np.array([[1.0004883, 3e-6], [3e4, 7e4]], np.float32)
  with tf.Graph().as_default(), tf1.Session() as session:
    rows = tf.IndexedSlices(tf.constant(values), tf.constant([2, 0]),
                            tf.constant([4, 2]))
    sent = wire_types.encode_summand(rows, dtype)
    assert sent.values.dtype == tf.float16
    found = session.run(wire_types.decode_sum(sent, dtype, tf.float32))
  with np.errstate(over='ignore'):
    np.testing.assert_array_equal(
        found.values, values.astype(half).astype(np.float32))
  assert found.indices.tolist() == [2, 0]
  assert found.dense_shape.tolist() == [4, 2]


@pytest.mark.parametrize('exchange_dtype, dtype, expected', [
    (None, tf.float32, False), ('float16', tf.float32, True),
    ('float16', tf.float16, False), ('bfloat16', tf.float16, False),
    ('int8', tf.bfloat16, True), ('bfloat16', tf.float64, True)])
def test_is_smaller(exchange_dtype, dtype, expected):
  assert wire_types.is_smaller(exchange_dtype, dtype) is expected
