// ModelSection: the model folder of a new run, and the facts or problems found in it.

#pragma once

#include "bridge/background.h"
#include "bridge/ui_services.h"
#include "widgets/card.h"

#include <QTimer>
#include <QWidget>

#include <optional>

class QLabel;
class QPushButton;

namespace mr::ui {

class MessageLabel;
class PathEdit;

class ModelSection final : public QWidget
{
    Q_OBJECT

public:
    explicit ModelSection(const UiServices& services, QWidget* parent = nullptr);

    QString path() const;
    void setPath(const QString& path);
    // Facts of the path now shown; empty while it is looked at, and if it cannot be trained.
    const std::optional<ModelInfo>& info() const { return m_info; }
    // A plan can be made, even if it cannot be trained.
    bool canBePlanned() const { return m_canBePlanned; }
    // Nothing is being looked at, nor about to be.
    bool settled() const { return !m_delay.isActive() && !m_question.busy(); }
    MessageLabel* message() const { return m_message; }
    PathEdit* pathEdit() const { return m_path; }

signals:
    void changed(); // path() or info() did

protected:
    void changeEvent(QEvent* event) override;

private:
    void inspect();
    void show(const Result<ModelInfo>& result);
    QString wayOut() const;
    void showProblems(const ModelInfo& info);
    QString summary(const ModelInfo& info) const;
    void retranslateUi();

    UiServices m_services;
    Card* m_card;
    QLabel* m_label;
    PathEdit* m_path;
    QPushButton* m_onThisPc;
    MessageLabel* m_message;
    QTimer m_delay;
    LatestOnly<Result<ModelInfo>> m_question;
    std::optional<ModelInfo> m_info;
    bool m_canBePlanned = false;
};

} // namespace mr::ui
