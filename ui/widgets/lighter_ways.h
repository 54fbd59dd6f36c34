// LighterWays: what trains every weight in less memory, each with what it takes and a button.
//
// Shows, computes nothing.

#pragma once

#include <millrace/planner.h>

#include <QWidget>

#include <vector>

class QGridLayout;

namespace mr::ui {

class LighterWays final : public QWidget
{
    Q_OBJECT

public:
    explicit LighterWays(const std::vector<LighterWay>& ways, QWidget* parent = nullptr);

signals:
    void chosen(const mr::LighterWay& way);

private:
    void addWay(QGridLayout* grid, const LighterWay& way);
};

} // namespace mr::ui
