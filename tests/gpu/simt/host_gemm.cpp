#include "gpu/simt/host_gemm.h"

#include "gpu/add_bias.h"
#include "gpu/simt/host_product.h"

namespace mr::simt {

namespace {

// `row`: from a row to the next; 0: the matrix is dense.
HostMatrix matrixOf(const TensorView& view, std::int64_t row)
{
    return {view.data, view.dtype, view.dims[0], view.dims[1], row > 0 ? row : view.dims[1], 1};
}

} // namespace

// A bias is added where a card's library adds it, else by our kernel.
Status HostGemm::run(const gpu::Product& product, cudaStream_t stream)
{
    ++m_products;
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
    HostProduct host;
    host.a = matrixOf(product.a, product.rowOfA);
    host.b = matrixOf(product.b, product.rowOfB);
    host.out = matrixOf(product.out, product.rowOfOut);
    if (product.transposeA)
        host.a = transposed(host.a);
    if (product.transposeB)
        host.b = transposed(host.b);
    if (host.a.cols != host.b.rows || host.out.rows != host.a.rows || host.out.cols != host.b.cols)
        return Status::error(ErrorKind::Internal, "gemm: shapes do not fit");
    if (product.bias.data)
        host.bias = {product.bias.data, product.bias.dtype, 1, product.bias.count(), 0, 1};
    host.scale = product.scaleA ? *product.scaleA * *product.scaleB : product.factor;
    host.accumulates = product.accumulate;
    simt::multiply(host);
    return {};
}

} // namespace mr::simt
