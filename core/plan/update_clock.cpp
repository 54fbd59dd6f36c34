#include "core/plan/update_clock.h"

namespace mr {

namespace {

class UniformClock final : public UpdateClock
{
public:
    explicit UniformClock(UpdateRule rule)
        : m_rule(rule)
    {
    }

    UpdateRule rule(GroupId /*group*/, StepIndex /*step*/, const Feedback& /*last*/) const override
    {
        return m_rule;
    }

private:
    UpdateRule m_rule;
};

} // namespace

std::unique_ptr<const UpdateClock> makeUniformClock(UpdateRule rule)
{
    return std::make_unique<UniformClock>(rule);
}

} // namespace mr
