#include "models/stall_words.h"

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

} // namespace mr::ui
