// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// The concept Compressor and its models.
#include <wring/compressor/block_scaled.hpp>
#include <wring/compressor/cast.hpp>
#include <wring/compressor/concept.hpp>
#include <wring/compressor/entropy_grid.hpp>
#include <wring/compressor/error_feedback.hpp>
#include <wring/compressor/gradient.hpp>
#include <wring/compressor/grid.hpp>
#include <wring/compressor/lossless.hpp>
#include <wring/compressor/none.hpp>
#include <wring/compressor/packed_words.hpp>
#include <wring/compressor/threshold.hpp>
#include <wring/compressor/top_k.hpp>
#include <wring/random.hpp>
