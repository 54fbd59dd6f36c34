#include "math/share_bar.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace mr::ui {

QVector<QRectF> sharePieces(const ShareBar& bar, const QRectF& box, double devicePixelRatio)
{
    const double sum = std::accumulate(bar.parts.begin(), bar.parts.end(), 0.0);
    const double whole = std::max(bar.whole, sum);
    QVector<QRectF> pieces;
    const double columns = std::floor(box.width() * devicePixelRatio);
    double before = 0.0;
    double taken = 0.0; // columns
    for (const double part : bar.parts) {
        before += part;
        const double end = whole > 0.0 ? std::round(before / whole * columns) : 0.0;
        const double width = part > 0.0 ? std::max(1.0, end - taken) : 0.0;
        pieces.push_back(QRectF(box.left() + taken / devicePixelRatio, box.top(),
            std::min(width, columns - taken) / devicePixelRatio, box.height()));
        taken = std::min(columns, taken + width);
    }
    return pieces;
}

} // namespace mr::ui
