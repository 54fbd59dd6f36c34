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

class ColumnRouter final : public GradientRouter
{
public:
    ColumnRouter(double share, const WindowRule& rule)
        : m_share(share)
        , m_rule(rule)
    {
    }

    GradientSplit split(GroupId /*group*/, StepIndex step, const Feedback& /*last*/) const override
    {
        return {m_share, m_rule.selectsAfter(step), true};
    }

private:
    double m_share;
    WindowRule m_rule;
};

} // namespace

std::unique_ptr<const GradientRouter> makeColumnRouter(double share, const WindowRule& rule)
{
    return std::make_unique<ColumnRouter>(share, rule);
}

std::unique_ptr<const GradientRouter> makeUniformRouter(GradientSplit split)
{
    return std::make_unique<UniformRouter>(split);
}

} // namespace mr
