#include "text/stall_words.h"

namespace mr::ui {

QString StallWords::name(std::size_t part)
{
    switch (part) {
    case 0:
        return tr("Compute");
    case 1:
        return tr("Upload");
    case 2:
        return tr("Download");
    case 3:
        return tr("Host update");
    case 4:
        return tr("Disk");
    case 5:
        return tr("Data");
    default:
        return tr("Other");
    }
}

QString StallWords::explanation(std::size_t part)
{
    switch (part) {
    case 0:
        return tr("The device was computing.");
    case 1:
        return tr("The device waited for bytes from the host.");
    case 2:
        return tr("The device waited until bytes had left for the host.");
    case 3:
        return tr("The device waited for the optimizer on the host.");
    case 4:
        return tr("The device waited for the disk.");
    case 5:
        return tr("The device waited for the next batch.");
    default:
        return tr("The device waited for something else: starting a step, saving, a full queue.");
    }
}

QString StallWords::name(IntervalKind kind)
{
    switch (kind) {
    case IntervalKind::Opening:
        return tr("Opening");
    case IntervalKind::Flush:
        return tr("Late updates");
    case IntervalKind::Evaluation:
        return tr("Evaluation");
    case IntervalKind::Checkpoint:
        return tr("Checkpoints");
    case IntervalKind::Answer:
        return tr("Answers");
    case IntervalKind::Replan:
        return tr("Planning again");
    case IntervalKind::Pause:
        return tr("Paused");
    case IntervalKind::Export:
        return tr("Saving the model");
    case IntervalKind::Turn:
        return tr("Change of block");
    }
    return {};
}

QString StallWords::explanation(IntervalKind kind)
{
    switch (kind) {
    case IntervalKind::Opening:
        return tr("Data and weights were read and memory was taken, before the first step.");
    case IntervalKind::Flush:
        return tr("Updates that the next step would have made were made before the weights were "
                  "looked at.");
    case IntervalKind::Evaluation:
        return tr("The model was evaluated on held-out data.");
    case IntervalKind::Checkpoint:
        return tr("Checkpoints were written, so that the run can be resumed.");
    case IntervalKind::Answer:
        return tr("Questions were answered while the run went on.");
    case IntervalKind::Replan:
        return tr("The run went on by another plan and was opened again from a checkpoint.");
    case IntervalKind::Pause:
        return tr("The run waited for room on the disk.");
    case IntervalKind::Export:
        return tr("The trained model was written.");
    case IntervalKind::Turn:
        return tr("A trained block was put away, and the next one came to the device.");
    }
    return {};
}

} // namespace mr::ui
