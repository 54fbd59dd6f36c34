#include "core/plan/router.h"

namespace mr {

namespace {

class UniformRouter final : public GradientRouter
{
public:
    explicit UniformRouter(GradientSplit split)
        : m_split(split)
    {
    }

    GradientSplit split(
        GroupId /*group*/, StepIndex /*step*/, const Feedback& /*last*/) const override
    {
        return m_split;
    }

private:
    GradientSplit m_split;
};

} // namespace

std::unique_ptr<const GradientRouter> makeUniformRouter(GradientSplit split)
{
    return std::make_unique<UniformRouter>(split);
}

} // namespace mr
