#include "gpu/simt/host_gemm.h"

#include "core/prove/conformance_case.h"
#include "core/prove/conformance_fp8.h"
#include "gpu/add_bias.h"

#include <bit>
#include <vector>

namespace mr::simt {

namespace {

struct Matrix {
    std::vector<float> values; // row-major
    std::int64_t rows = 0;
    std::int64_t cols = 0;
};

float load(const TensorView& view, std::int64_t i)
{
    if (view.dtype == DType::F32)
        return view.as<const float>()[i];
    if (view.dtype != DType::BF16)
        return static_cast<float>(
            conformance::fp8Value(view.dtype, view.as<const std::uint8_t>()[i]));
    return std::bit_cast<float>(std::uint32_t{view.as<const std::uint16_t>()[i]} << 16);
}

void store(const TensorView& view, std::int64_t i, float value)
{
    if (view.dtype == DType::F32)
        view.as<float>()[i] = value;
    else
        view.as<std::uint16_t>()[i] = static_cast<std::uint16_t>(
            std::bit_cast<std::uint32_t>(conformance::roundToBf16(value)) >> 16);
}

// op(view), with its rows next to each other.
Matrix matrixOf(const TensorView& view, bool transpose)
{
    Matrix to;
    to.rows = view.dims[transpose ? 1 : 0];
    to.cols = view.dims[transpose ? 0 : 1];
    to.values.resize(static_cast<std::size_t>(view.count()));
    for (std::int64_t r = 0; r < to.rows; ++r)
        for (std::int64_t c = 0; c < to.cols; ++c)
            to.values[static_cast<std::size_t>(r * to.cols + c)] =
                load(view, transpose ? c * to.rows + r : r * to.cols + c);
    return to;
}

void addRow(const Matrix& b, float factor, std::int64_t k, std::vector<float>& sums)
{
    const float* row = b.values.data() + k * b.cols;
    for (std::size_t c = 0; c < sums.size(); ++c)
        sums[c] = sums[c] + factor * row[c];
}

} // namespace

// A bias is added where a card's library adds it, else by our kernel.
Status HostGemm::run(const gpu::Product& product, cudaStream_t stream)
{
    const bool isOurs = product.bias.data != nullptr && product.out.count() > 0 &&
                        (product.bias.dtype != product.out.dtype || product.a.count() == 0);
    if (!isOurs)
        return multiply(product);
    gpu::Product plain = product;
    plain.bias = {};
    MR_TRY(multiply(plain));
    return gpu::launchAddBias(product.out, product.bias, product.a.count() > 0, stream);
}

Status HostGemm::multiply(const gpu::Product& product)
{
    const Matrix a = matrixOf(product.a, product.transposeA);
    const Matrix b = matrixOf(product.b, product.transposeB);
    if (a.cols != b.rows || product.out.dims[0] != a.rows || product.out.dims[1] != b.cols)
        return Status::error(ErrorKind::Internal, "gemm: shapes do not fit");
    const float scale = product.scaleA ? *product.scaleA * *product.scaleB : 1.0F;
    std::vector<float> sums(static_cast<std::size_t>(b.cols));
    for (std::int64_t r = 0; r < a.rows; ++r) {
        std::fill(sums.begin(), sums.end(), 0.0F);
        for (std::int64_t k = 0; k < a.cols; ++k)
            addRow(b, a.values[static_cast<std::size_t>(r * a.cols + k)], k, sums);
        for (std::int64_t c = 0; c < b.cols; ++c) {
            const std::int64_t at = r * b.cols + c;
            float value = scale * sums[static_cast<std::size_t>(c)];
            if (product.bias.data)
                value = value + load(product.bias, c);
            store(product.out, at, product.accumulate ? load(product.out, at) + value : value);
        }
    }
    return {};
}

} // namespace mr::simt
