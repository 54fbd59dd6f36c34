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

class WindowClock final : public UpdateClock
{
public:
    explicit WindowClock(const WindowRule& rule)
        : m_rule(rule)
    {
    }

    UpdateRule rule(GroupId /*group*/, StepIndex step, const Feedback& /*last*/) const override
    {
        UpdateRule answer;
        if (step != kWholeRun && step <= m_rule.warmup)
            return answer;
        answer.windowSteps = m_rule.interval;
        answer.maxStaleSteps = (m_rule.overlap ? 2 : 1) * m_rule.interval - 1;
        answer.besideNext = m_rule.overlap;
        if (step == kWholeRun)
            return answer;
        const std::int64_t last =
            (step - m_rule.warmup + m_rule.interval - 1) / m_rule.interval * m_rule.interval +
            m_rule.warmup;
        answer.besideNext = answer.besideNext && !m_rule.selectsAfter(last);
        return answer;
    }

    StepIndex warmup() const noexcept override { return m_rule.warmup; }

private:
    WindowRule m_rule;
};

} // namespace

bool WindowRule::selectsAfter(StepIndex step) const noexcept
{
    if (select == 0 || step < warmup || step == kWholeRun)
        return false;
    const std::int64_t every = (select + interval - 1) / interval * interval;
    return (step - warmup) % every == 0;
}

std::unique_ptr<const UpdateClock> makeWindowClock(const WindowRule& rule)
{
    return std::make_unique<WindowClock>(rule);
}

std::unique_ptr<const UpdateClock> makeUniformClock(UpdateRule rule)
{
    return std::make_unique<UniformClock>(rule);
}

} // namespace mr
