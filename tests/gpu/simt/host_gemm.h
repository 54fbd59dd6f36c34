// HostGemm: matrix products of the host device, by host_product.h. A bias that no library adds is
// added by launchAddBias().

#pragma once

#include "gpu/gemm.h"

namespace mr::simt {

class HostGemm final : public gpu::Gemm
{
public:
    Status run(const gpu::Product& product, cudaStream_t stream) override;

private:
    static Status multiply(const gpu::Product& product);
};

} // namespace mr::simt
