// The timeline of a step as it travels from the feed to the charts: shared, never changed.

#pragma once

#include <millrace/step_timeline.h>

#include <QMetaType>

#include <memory>

namespace mr::ui {

using TimelinePtr = std::shared_ptr<const StepTimeline>;

} // namespace mr::ui

Q_DECLARE_METATYPE(mr::ui::TimelinePtr)
