// HostGemm: matrix products of the host device, by host_product.h. A bias that no library adds is
// added by launchAddBias().

#pragma once

#include "gpu/gemm.h"

#include <cstdint>

namespace mr::simt {

class HostGemm final : public gpu::Gemm
{
public:
    Status run(const gpu::Product& product, cudaStream_t stream) override;

    std::uint64_t products() const { return m_products; } // that were asked for

private:
    static Status multiply(const gpu::Product& product);

    std::uint64_t m_products = 0;
};

} // namespace mr::simt
