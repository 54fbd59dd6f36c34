#include "app/desktop/device_session.h"

#include "app/compose.h"

#include <millrace/planner.h>

#include <utility>

namespace mr::app {
namespace {

class DeviceSession final : public Session
{
public:
    DeviceSession(std::unique_ptr<Device> device, std::unique_ptr<Session> session)
        : m_device(std::move(device))
        , m_session(std::move(session))
    {
    }

    Status start() override { return m_session->start(); }
    void requestStop() noexcept override { m_session->requestStop(); }
    void saveNow() noexcept override { m_session->saveNow(); }
    void answerPause(PauseAnswer answer) override { m_session->answerPause(std::move(answer)); }
    Status ask(Question question) override { return m_session->ask(std::move(question)); }
    void stopAnswer() noexcept override { m_session->stopAnswer(); }
    RunState state() const noexcept override { return m_session->state(); }
    Status failure() const override { return m_session->failure(); }
    std::int64_t runId() const noexcept override { return m_session->runId(); }
    Status wait() override { return m_session->wait(); }

private:
    std::unique_ptr<Device> m_device; // outlives the session: declared first
    std::unique_ptr<Session> m_session;
};

Result<std::unique_ptr<Session>> together(
    std::unique_ptr<Device> device, Result<std::unique_ptr<Session>> session)
{
    if (!session.ok())
        return session.status();
    return std::unique_ptr<Session>(
        std::make_unique<DeviceSession>(std::move(device), std::move(session).value()));
}

} // namespace

Result<std::unique_ptr<Session>> openOnDevice(
    const RunSpec& spec, RunStore& store, Session::Listener listener, OpeningWatch watch)
{
    MR_ASSIGN(RunSpec complete, completeForMachine(spec));
    MR_ASSIGN(RunSpec resolved, resolveSpec(complete, 0));
    MR_ASSIGN(std::unique_ptr<Device> device, makeDevice(resolved));
    Device& borrowed = *device;
    auto session =
        Session::open(complete, borrowed, store, std::move(listener), std::move(watch), &spec);
    return together(std::move(device), std::move(session));
}

Result<std::unique_ptr<Session>> resumeOnDevice(
    const std::string& runDir, RunStore& store, Session::Listener listener, OpeningWatch watch)
{
    MR_ASSIGN(RunSpec spec, readRunSpec(runDir));
    MR_ASSIGN(std::unique_ptr<Device> device, makeDevice(spec));
    Device& borrowed = *device;
    auto session = Session::resume(runDir, borrowed, store, std::move(listener), std::move(watch));
    return together(std::move(device), std::move(session));
}

} // namespace mr::app
