// Plan of each policy in each order of work, as text.

#include "core/plan/plan_text.h"
#include "support/test_room.h"
#include "tests/core/plan/plan_shapes.h"

#include <QTest>

namespace mr::test::tst_plan_text {

namespace {

QString textOf(const StepPlan& plan)
{
    return QString::fromStdString("\n" + toText(plan));
}

BuiltStep step7(const OffloadPolicy& policy, int blocks, int microBatches,
    Precision precision = Precision::BF16)
{
    StepSpec spec = specOf(7, microBatches);
    spec.precision = precision;
    Result<BuiltStep> built =
        buildPlan(spec, carryOf(6), smallShape(blocks), endless(), {}, policy);
    return built.ok() ? std::move(built).value() : BuiltStep{};
}

} // namespace

class TestPlanText : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void residentOneMicroBatch()
    {
        const BuiltStep built = step7(policyOf("resident", "by-microbatch"), 2, 1);

        QCOMPARE(textOf(built.plan), QStringLiteral(R"(
0 FetchBatch CopyIn m0 v7
1 Forward Compute g0 m0 [0,4096) v6 <- 0
2 Forward Compute g1 m0 [0,4096) v6
3 Forward Compute g2 m0 [0,4096) v6
4 Backward Compute g3 m0 [0,4096) v6
5 FinishGradient Compute g3 [0,4096) v7
6 NormPart Compute g3 [0,4096) v7
7 Backward Compute g2 m0 [0,4096) v6
8 FinishGradient Compute g2 [0,4096) v7
9 NormPart Compute g2 [0,4096) v7
10 Backward Compute g1 m0 [0,4096) v6
11 FinishGradient Compute g1 [0,4096) v7
12 NormPart Compute g1 [0,4096) v7
13 Backward Compute g0 m0 [0,4096) v6
14 FinishGradient Compute g0 [0,4096) v7
15 NormPart Compute g0 [0,4096) v7
16 JoinNorm Compute v7
17 SendScalars CopyOut v7 <- 16
18 UpdateOnDevice Compute g0 [0,4096) v7
19 UpdateOnDevice Compute g1 [0,4096) v7
20 UpdateOnDevice Compute g2 [0,4096) v7
21 UpdateOnDevice Compute g3 [0,4096) v7
)"));
    }

    void residentTwoMicroBatches()
    {
        const BuiltStep built = step7(policyOf("resident", "by-microbatch"), 2, 2);

        QCOMPARE(textOf(built.plan), QStringLiteral(R"(
0 FetchBatch CopyIn m0 v7
1 FetchBatch CopyIn m1 v7
2 Forward Compute g0 m0 [0,4096) v6 <- 0
3 Forward Compute g1 m0 [0,4096) v6
4 Forward Compute g2 m0 [0,4096) v6
5 Backward Compute g3 m0 [0,4096) v6
6 Backward Compute g2 m0 [0,4096) v6
7 Backward Compute g1 m0 [0,4096) v6
8 Backward Compute g0 m0 [0,4096) v6
9 Forward Compute g0 m1 [0,4096) v6 <- 1
10 Forward Compute g1 m1 [0,4096) v6
11 Forward Compute g2 m1 [0,4096) v6
12 Backward Compute g3 m1 [0,4096) v6
13 FinishGradient Compute g3 [0,4096) v7
14 NormPart Compute g3 [0,4096) v7
15 Backward Compute g2 m1 [0,4096) v6
16 FinishGradient Compute g2 [0,4096) v7
17 NormPart Compute g2 [0,4096) v7
18 Backward Compute g1 m1 [0,4096) v6
19 FinishGradient Compute g1 [0,4096) v7
20 NormPart Compute g1 [0,4096) v7
21 Backward Compute g0 m1 [0,4096) v6
22 FinishGradient Compute g0 [0,4096) v7
23 NormPart Compute g0 [0,4096) v7
24 JoinNorm Compute v7
25 SendScalars CopyOut v7 <- 24
26 UpdateOnDevice Compute g0 [0,4096) v7
27 UpdateOnDevice Compute g1 [0,4096) v7
28 UpdateOnDevice Compute g2 [0,4096) v7
29 UpdateOnDevice Compute g3 [0,4096) v7
)"));
    }

    void zeroOffloadOneMicroBatch()
    {
        const BuiltStep built = step7(policyOf("zero-offload", "by-microbatch"), 2, 1);

        QCOMPARE(textOf(built.plan), QStringLiteral(R"(
0 FetchBatch CopyIn m0 v7
1 Forward Compute g0 m0 [0,4096) v6 <- 0
2 Forward Compute g1 m0 [0,4096) v6
3 Forward Compute g2 m0 [0,4096) v6
4 Backward Compute g3 m0 [0,4096) v6
5 FinishGradient Compute g3 [0,4096) v7
6 SendGradient CopyOut g3 [0,4096) v7 <- 5
7 NormPart Compute g3 [0,4096) v7
8 Backward Compute g2 m0 [0,4096) v6
9 FinishGradient Compute g2 [0,4096) v7
10 SendGradient CopyOut g2 [0,4096) v7 <- 9
11 NormPart Compute g2 [0,4096) v7
12 Backward Compute g1 m0 [0,4096) v6
13 FinishGradient Compute g1 [0,4096) v7
14 SendGradient CopyOut g1 [0,4096) v7 <- 13
15 NormPart Compute g1 [0,4096) v7
16 Backward Compute g0 m0 [0,4096) v6
17 FinishGradient Compute g0 [0,4096) v7
18 SendGradient CopyOut g0 [0,4096) v7 <- 17
19 NormPart Compute g0 [0,4096) v7
20 JoinNorm Compute v7
21 SendScalars CopyOut v7 <- 20
22 UpdateOnHost Host g0 [0,4096) v7 <- 21
23 FetchWeights CopyIn g0 [0,4096) v7 <- 22
24 UpdateOnHost Host g1 [0,4096) v7
25 FetchWeights CopyIn g1 [0,4096) v7 <- 24
26 UpdateOnHost Host g2 [0,4096) v7
27 FetchWeights CopyIn g2 [0,4096) v7 <- 26
28 UpdateOnHost Host g3 [0,4096) v7
29 FetchWeights CopyIn g3 [0,4096) v7 <- 28
)"));
    }

    void zeroOffloadTwoMicroBatches()
    {
        const BuiltStep built = step7(policyOf("zero-offload", "by-microbatch"), 2, 2);

        QCOMPARE(textOf(built.plan), QStringLiteral(R"(
0 FetchBatch CopyIn m0 v7
1 FetchBatch CopyIn m1 v7
2 Forward Compute g0 m0 [0,4096) v6 <- 0
3 Forward Compute g1 m0 [0,4096) v6
4 Forward Compute g2 m0 [0,4096) v6
5 Backward Compute g3 m0 [0,4096) v6
6 Backward Compute g2 m0 [0,4096) v6
7 Backward Compute g1 m0 [0,4096) v6
8 Backward Compute g0 m0 [0,4096) v6
9 Forward Compute g0 m1 [0,4096) v6 <- 1
10 Forward Compute g1 m1 [0,4096) v6
11 Forward Compute g2 m1 [0,4096) v6
12 Backward Compute g3 m1 [0,4096) v6
13 FinishGradient Compute g3 [0,4096) v7
14 SendGradient CopyOut g3 [0,4096) v7 <- 13
15 NormPart Compute g3 [0,4096) v7
16 Backward Compute g2 m1 [0,4096) v6
17 FinishGradient Compute g2 [0,4096) v7
18 SendGradient CopyOut g2 [0,4096) v7 <- 17
19 NormPart Compute g2 [0,4096) v7
20 Backward Compute g1 m1 [0,4096) v6
21 FinishGradient Compute g1 [0,4096) v7
22 SendGradient CopyOut g1 [0,4096) v7 <- 21
23 NormPart Compute g1 [0,4096) v7
24 Backward Compute g0 m1 [0,4096) v6
25 FinishGradient Compute g0 [0,4096) v7
26 SendGradient CopyOut g0 [0,4096) v7 <- 25
27 NormPart Compute g0 [0,4096) v7
28 JoinNorm Compute v7
29 SendScalars CopyOut v7 <- 28
30 UpdateOnHost Host g0 [0,4096) v7 <- 29
31 FetchWeights CopyIn g0 [0,4096) v7 <- 30
32 UpdateOnHost Host g1 [0,4096) v7
33 FetchWeights CopyIn g1 [0,4096) v7 <- 32
34 UpdateOnHost Host g2 [0,4096) v7
35 FetchWeights CopyIn g2 [0,4096) v7 <- 34
36 UpdateOnHost Host g3 [0,4096) v7
37 FetchWeights CopyIn g3 [0,4096) v7 <- 36
)"));
    }

    void residentByLayer()
    {
        const BuiltStep built = step7(policyOf("resident", "by-layer"), 2, 2);

        QCOMPARE(textOf(built.plan), QStringLiteral(R"(
0 FetchBatch CopyIn m0 v7
1 FetchBatch CopyIn m1 v7
2 Forward Compute g0 m0 [0,4096) v6 <- 0
3 Forward Compute g0 m1 [0,4096) v6 <- 1
4 Forward Compute g1 m0 [0,4096) v6
5 Forward Compute g1 m1 [0,4096) v6
6 Forward Compute g2 m0 [0,4096) v6
7 Forward Compute g2 m1 [0,4096) v6
8 Backward Compute g3 m0 [0,4096) v6
9 Backward Compute g3 m1 [0,4096) v6
10 FinishGradient Compute g3 [0,4096) v7
11 NormPart Compute g3 [0,4096) v7
12 Backward Compute g2 m0 [0,4096) v6
13 Backward Compute g2 m1 [0,4096) v6
14 FinishGradient Compute g2 [0,4096) v7
15 NormPart Compute g2 [0,4096) v7
16 Backward Compute g1 m0 [0,4096) v6
17 Backward Compute g1 m1 [0,4096) v6
18 FinishGradient Compute g1 [0,4096) v7
19 NormPart Compute g1 [0,4096) v7
20 Backward Compute g0 m0 [0,4096) v6
21 Backward Compute g0 m1 [0,4096) v6
22 FinishGradient Compute g0 [0,4096) v7
23 NormPart Compute g0 [0,4096) v7
24 JoinNorm Compute v7
25 SendScalars CopyOut v7 <- 24
26 UpdateOnDevice Compute g0 [0,4096) v7
27 UpdateOnDevice Compute g1 [0,4096) v7
28 UpdateOnDevice Compute g2 [0,4096) v7
29 UpdateOnDevice Compute g3 [0,4096) v7
)"));
    }

    void zeroOffloadByLayer()
    {
        const BuiltStep built = step7(policyOf("zero-offload", "by-layer"), 2, 2);

        QCOMPARE(textOf(built.plan), QStringLiteral(R"(
0 FetchBatch CopyIn m0 v7
1 FetchBatch CopyIn m1 v7
2 Forward Compute g0 m0 [0,4096) v6 <- 0
3 Forward Compute g0 m1 [0,4096) v6 <- 1
4 Forward Compute g1 m0 [0,4096) v6
5 Forward Compute g1 m1 [0,4096) v6
6 Forward Compute g2 m0 [0,4096) v6
7 Forward Compute g2 m1 [0,4096) v6
8 Backward Compute g3 m0 [0,4096) v6
9 Backward Compute g3 m1 [0,4096) v6
10 FinishGradient Compute g3 [0,4096) v7
11 SendGradient CopyOut g3 [0,4096) v7 <- 10
12 NormPart Compute g3 [0,4096) v7
13 Backward Compute g2 m0 [0,4096) v6
14 Backward Compute g2 m1 [0,4096) v6
15 FinishGradient Compute g2 [0,4096) v7
16 SendGradient CopyOut g2 [0,4096) v7 <- 15
17 NormPart Compute g2 [0,4096) v7
18 Backward Compute g1 m0 [0,4096) v6
19 Backward Compute g1 m1 [0,4096) v6
20 FinishGradient Compute g1 [0,4096) v7
21 SendGradient CopyOut g1 [0,4096) v7 <- 20
22 NormPart Compute g1 [0,4096) v7
23 Backward Compute g0 m0 [0,4096) v6
24 Backward Compute g0 m1 [0,4096) v6
25 FinishGradient Compute g0 [0,4096) v7
26 SendGradient CopyOut g0 [0,4096) v7 <- 25
27 NormPart Compute g0 [0,4096) v7
28 JoinNorm Compute v7
29 SendScalars CopyOut v7 <- 28
30 UpdateOnHost Host g0 [0,4096) v7 <- 29
31 FetchWeights CopyIn g0 [0,4096) v7 <- 30
32 UpdateOnHost Host g1 [0,4096) v7
33 FetchWeights CopyIn g1 [0,4096) v7 <- 32
34 UpdateOnHost Host g2 [0,4096) v7
35 FetchWeights CopyIn g2 [0,4096) v7 <- 34
36 UpdateOnHost Host g3 [0,4096) v7
37 FetchWeights CopyIn g3 [0,4096) v7 <- 36
)"));
    }

    void residentByLayerFlip()
    {
        const BuiltStep built = step7(policyOf("resident", "by-layer-flip"), 2, 2);

        QCOMPARE(textOf(built.plan), QStringLiteral(R"(
0 FetchBatch CopyIn m0 v7
1 FetchBatch CopyIn m1 v7
2 Forward Compute g0 m0 [0,4096) v6 <- 0
3 Forward Compute g0 m1 [0,4096) v6 <- 1
4 Forward Compute g1 m1 [0,4096) v6
5 Forward Compute g1 m0 [0,4096) v6
6 Forward Compute g2 m0 [0,4096) v6
7 Forward Compute g2 m1 [0,4096) v6
8 Backward Compute g3 m1 [0,4096) v6
9 Backward Compute g3 m0 [0,4096) v6
10 FinishGradient Compute g3 [0,4096) v7
11 NormPart Compute g3 [0,4096) v7
12 Backward Compute g2 m0 [0,4096) v6
13 Backward Compute g2 m1 [0,4096) v6
14 FinishGradient Compute g2 [0,4096) v7
15 NormPart Compute g2 [0,4096) v7
16 Backward Compute g1 m1 [0,4096) v6
17 Backward Compute g1 m0 [0,4096) v6
18 FinishGradient Compute g1 [0,4096) v7
19 NormPart Compute g1 [0,4096) v7
20 Backward Compute g0 m0 [0,4096) v6
21 Backward Compute g0 m1 [0,4096) v6
22 FinishGradient Compute g0 [0,4096) v7
23 NormPart Compute g0 [0,4096) v7
24 JoinNorm Compute v7
25 SendScalars CopyOut v7 <- 24
26 UpdateOnDevice Compute g0 [0,4096) v7
27 UpdateOnDevice Compute g1 [0,4096) v7
28 UpdateOnDevice Compute g2 [0,4096) v7
29 UpdateOnDevice Compute g3 [0,4096) v7
)"));
    }

    void zeroOffloadByLayerFlip()
    {
        const BuiltStep built = step7(policyOf("zero-offload", "by-layer-flip"), 2, 2);

        QCOMPARE(textOf(built.plan), QStringLiteral(R"(
0 FetchBatch CopyIn m0 v7
1 FetchBatch CopyIn m1 v7
2 Forward Compute g0 m0 [0,4096) v6 <- 0
3 Forward Compute g0 m1 [0,4096) v6 <- 1
4 Forward Compute g1 m1 [0,4096) v6
5 Forward Compute g1 m0 [0,4096) v6
6 Forward Compute g2 m0 [0,4096) v6
7 Forward Compute g2 m1 [0,4096) v6
8 Backward Compute g3 m1 [0,4096) v6
9 Backward Compute g3 m0 [0,4096) v6
10 FinishGradient Compute g3 [0,4096) v7
11 SendGradient CopyOut g3 [0,4096) v7 <- 10
12 NormPart Compute g3 [0,4096) v7
13 Backward Compute g2 m0 [0,4096) v6
14 Backward Compute g2 m1 [0,4096) v6
15 FinishGradient Compute g2 [0,4096) v7
16 SendGradient CopyOut g2 [0,4096) v7 <- 15
17 NormPart Compute g2 [0,4096) v7
18 Backward Compute g1 m1 [0,4096) v6
19 Backward Compute g1 m0 [0,4096) v6
20 FinishGradient Compute g1 [0,4096) v7
21 SendGradient CopyOut g1 [0,4096) v7 <- 20
22 NormPart Compute g1 [0,4096) v7
23 Backward Compute g0 m0 [0,4096) v6
24 Backward Compute g0 m1 [0,4096) v6
25 FinishGradient Compute g0 [0,4096) v7
26 SendGradient CopyOut g0 [0,4096) v7 <- 25
27 NormPart Compute g0 [0,4096) v7
28 JoinNorm Compute v7
29 SendScalars CopyOut v7 <- 28
30 UpdateOnHost Host g0 [0,4096) v7 <- 29
31 FetchWeights CopyIn g0 [0,4096) v7 <- 30
32 UpdateOnHost Host g1 [0,4096) v7
33 FetchWeights CopyIn g1 [0,4096) v7 <- 32
34 UpdateOnHost Host g2 [0,4096) v7
35 FetchWeights CopyIn g2 [0,4096) v7 <- 34
36 UpdateOnHost Host g3 [0,4096) v7
37 FetchWeights CopyIn g3 [0,4096) v7 <- 36
)"));
    }

    // Blocks take turns: block 1 in the place of block 3. The device sends the sum itself, which in
    // bf16 backward rounded.
    void zeroOffloadOfManyBlocks()
    {
        const QString text = QStringLiteral(R"(
0 FetchBatch CopyIn m0 v7
1 Forward Compute g0 m0 [0,4096) v6 <- 0
2 Forward Compute g1 m0 [0,4096) v6
3 Forward Compute g2 m0 [0,4096) v6
4 Forward Compute g3 m0 [0,4096) v6
5 Backward Compute g4 m0 [0,4096) v6
6 FinishGradient Compute g4 [0,4096) v7
7 SendGradient CopyOut g4 [0,4096) v7 <- 6
8 NormPart Compute g4 [0,4096) v7
9 Backward Compute g3 m0 [0,4096) v6
10 FinishGradient Compute g3 [0,4096) v7
11 SendGradient CopyOut g3 [0,4096) v7 <- 10
12 NormPart Compute g3 [0,4096) v7
13 Backward Compute g2 m0 [0,4096) v6
14 FinishGradient Compute g2 [0,4096) v7
15 SendGradient CopyOut g2 [0,4096) v7 <- 14
16 NormPart Compute g2 [0,4096) v7
17 Backward Compute g1 m0 [0,4096) v6 <- 11
18 FinishGradient Compute g1 [0,4096) v7
19 SendGradient CopyOut g1 [0,4096) v7 <- 18
20 NormPart Compute g1 [0,4096) v7
21 Backward Compute g0 m0 [0,4096) v6
22 FinishGradient Compute g0 [0,4096) v7
23 SendGradient CopyOut g0 [0,4096) v7 <- 22
24 NormPart Compute g0 [0,4096) v7
25 JoinNorm Compute v7
26 SendScalars CopyOut v7 <- 25
27 UpdateOnHost Host g0 [0,4096) v7 <- 26
28 FetchWeights CopyIn g0 [0,4096) v7 <- 27
29 UpdateOnHost Host g1 [0,4096) v7
30 FetchWeights CopyIn g1 [0,4096) v7 <- 29
31 UpdateOnHost Host g2 [0,4096) v7
32 FetchWeights CopyIn g2 [0,4096) v7 <- 31
33 UpdateOnHost Host g3 [0,4096) v7
34 FetchWeights CopyIn g3 [0,4096) v7 <- 33
35 UpdateOnHost Host g4 [0,4096) v7
36 FetchWeights CopyIn g4 [0,4096) v7 <- 35
)");
        for (const Precision precision : {Precision::BF16, Precision::F32})
            QCOMPARE(textOf(step7(policyOf("zero-offload"), 3, 1, precision).plan), text);
    }

    // A sum of micro-batches is rounded to the place from which it is sent.
    void zeroOffloadOfManyBlocksSumsMicroBatches()
    {
        const BuiltStep built = step7(policyOf("zero-offload", "by-layer"), 3, 2);

        QCOMPARE(textOf(built.plan), QStringLiteral(R"(
0 FetchBatch CopyIn m0 v7
1 FetchBatch CopyIn m1 v7
2 Forward Compute g0 m0 [0,4096) v6 <- 0
3 Forward Compute g0 m1 [0,4096) v6 <- 1
4 Forward Compute g1 m0 [0,4096) v6
5 Forward Compute g1 m1 [0,4096) v6
6 Forward Compute g2 m0 [0,4096) v6
7 Forward Compute g2 m1 [0,4096) v6
8 Forward Compute g3 m0 [0,4096) v6
9 Forward Compute g3 m1 [0,4096) v6
10 Backward Compute g4 m0 [0,4096) v6
11 Backward Compute g4 m1 [0,4096) v6
12 FinishGradient Compute g4 [0,4096) v7
13 SendGradient CopyOut g4 [0,4096) v7 <- 12
14 NormPart Compute g4 [0,4096) v7
15 Backward Compute g3 m0 [0,4096) v6
16 Backward Compute g3 m1 [0,4096) v6
17 FinishGradient Compute g3 [0,4096) v7
18 SendGradient CopyOut g3 [0,4096) v7 <- 17
19 NormPart Compute g3 [0,4096) v7
20 Backward Compute g2 m0 [0,4096) v6
21 Backward Compute g2 m1 [0,4096) v6
22 FinishGradient Compute g2 [0,4096) v7
23 SendGradient CopyOut g2 [0,4096) v7 <- 22
24 NormPart Compute g2 [0,4096) v7
25 Backward Compute g1 m0 [0,4096) v6
26 Backward Compute g1 m1 [0,4096) v6
27 FinishGradient Compute g1 [0,4096) v7 <- 18
28 SendGradient CopyOut g1 [0,4096) v7 <- 27
29 NormPart Compute g1 [0,4096) v7
30 Backward Compute g0 m0 [0,4096) v6
31 Backward Compute g0 m1 [0,4096) v6
32 FinishGradient Compute g0 [0,4096) v7
33 SendGradient CopyOut g0 [0,4096) v7 <- 32
34 NormPart Compute g0 [0,4096) v7
35 JoinNorm Compute v7
36 SendScalars CopyOut v7 <- 35
37 UpdateOnHost Host g0 [0,4096) v7 <- 36
38 FetchWeights CopyIn g0 [0,4096) v7 <- 37
39 UpdateOnHost Host g1 [0,4096) v7
40 FetchWeights CopyIn g1 [0,4096) v7 <- 39
41 UpdateOnHost Host g2 [0,4096) v7
42 FetchWeights CopyIn g2 [0,4096) v7 <- 41
43 UpdateOnHost Host g3 [0,4096) v7
44 FetchWeights CopyIn g3 [0,4096) v7 <- 43
45 UpdateOnHost Host g4 [0,4096) v7
46 FetchWeights CopyIn g4 [0,4096) v7 <- 45
)"));
    }

    // Half of every group on each side, in host tiles of 2,048 elements and state tiles of 1,024
    // (the least there is): three tiles are fetched before the norm is known, then one for each
    // that is stored.
    void deepOptimizerStates()
    {
        const BuiltStep built = step7(
            policyWith("deep-optimizer-states", {{"device-share", "0.5"}, {"tile", "4KiB"}}), 1, 1);

        QCOMPARE(textOf(built.plan), QStringLiteral(R"(
0 FetchBatch CopyIn m0 v7
1 Forward Compute g0 m0 [0,4096) v6 <- 0
2 Forward Compute g1 m0 [0,4096) v6
3 Backward Compute g2 m0 [0,4096) v6
4 FinishGradient Compute g2 [0,4096) v7
5 SendGradient CopyOut g2 [2048,4096) v7 <- 4
6 NormPart Compute g2 [0,4096) v7
7 Backward Compute g1 m0 [0,4096) v6
8 FinishGradient Compute g1 [0,4096) v7
9 SendGradient CopyOut g1 [2048,4096) v7 <- 8
10 NormPart Compute g1 [0,4096) v7
11 Backward Compute g0 m0 [0,4096) v6
12 FinishGradient Compute g0 [0,4096) v7
13 SendGradient CopyOut g0 [2048,4096) v7 <- 12
14 NormPart Compute g0 [0,4096) v7
15 FetchState CopyIn g0 [0,1024) v7
16 FetchState CopyIn g0 [1024,2048) v7
17 FetchState CopyIn g1 [0,1024) v7
18 JoinNorm Compute v7
19 SendScalars CopyOut v7 <- 18
20 UpdateOnDevice Compute g0 [0,1024) v7 <- 15
21 StoreState CopyOut g0 [0,1024) v7 <- 20
22 FetchState CopyIn g1 [1024,2048) v7 <- 21
23 UpdateOnHost Host g0 [2048,4096) v7 <- 19
24 FetchWeights CopyIn g0 [2048,4096) v7 <- 23
25 UpdateOnDevice Compute g0 [1024,2048) v7 <- 16
26 StoreState CopyOut g0 [1024,2048) v7 <- 25
27 FetchState CopyIn g2 [0,1024) v7 <- 26
28 UpdateOnDevice Compute g1 [0,1024) v7 <- 17
29 StoreState CopyOut g1 [0,1024) v7 <- 28
30 FetchState CopyIn g2 [1024,2048) v7 <- 29
31 UpdateOnHost Host g1 [2048,4096) v7
32 FetchWeights CopyIn g1 [2048,4096) v7 <- 31
33 UpdateOnDevice Compute g1 [1024,2048) v7 <- 22
34 StoreState CopyOut g1 [1024,2048) v7 <- 33
35 UpdateOnDevice Compute g2 [0,1024) v7 <- 27
36 StoreState CopyOut g2 [0,1024) v7 <- 35
37 UpdateOnHost Host g2 [2048,4096) v7
38 FetchWeights CopyIn g2 [2048,4096) v7 <- 37
39 UpdateOnDevice Compute g2 [1024,2048) v7 <- 30
40 StoreState CopyOut g2 [1024,2048) v7 <- 39
)"));
    }

    // The second of two steps of which half of the host's part is late.
    void deepOptimizerStatesLate()
    {
        const OffloadPolicy policy = policyWith(
            "deep-optimizer-states", {{"device-share", "0.5"}, {"tile", "4KiB"}, {"late", "0.5"}});
        const Carry left = step7(policy, 1, 1).out;
        Result<BuiltStep> built =
            buildPlan(specOf(8, 1), left, smallShape(1), endless(), {}, policy);

        QVERIFY(built.ok());
        QCOMPARE(textOf(built.value().plan), QStringLiteral(R"(
0 FetchBatch CopyIn m0 v8
1 UpdateOnHost Host g0 [3072,4096) v7
2 FetchWeights CopyIn g0 [3072,4096) v7 <- 1
3 UpdateOnHost Host g1 [3072,4096) v7
4 FetchWeights CopyIn g1 [3072,4096) v7 <- 3
5 UpdateOnHost Host g2 [3072,4096) v7
6 FetchWeights CopyIn g2 [3072,4096) v7 <- 5
7 Forward Compute g0 m0 [0,4096) v7 <- 2
8 Forward Compute g1 m0 [0,4096) v7 <- 4
9 Backward Compute g2 m0 [0,4096) v7 <- 6
10 FinishGradient Compute g2 [0,4096) v8
11 SendGradient CopyOut g2 [2048,4096) v8 <- 10
12 NormPart Compute g2 [0,4096) v8
13 Backward Compute g1 m0 [0,4096) v7
14 FinishGradient Compute g1 [0,4096) v8
15 SendGradient CopyOut g1 [2048,4096) v8 <- 14
16 NormPart Compute g1 [0,4096) v8
17 Backward Compute g0 m0 [0,4096) v7
18 FinishGradient Compute g0 [0,4096) v8
19 SendGradient CopyOut g0 [2048,4096) v8 <- 18
20 NormPart Compute g0 [0,4096) v8
21 FetchState CopyIn g0 [0,1024) v8
22 FetchState CopyIn g0 [1024,2048) v8
23 FetchState CopyIn g1 [0,1024) v8
24 JoinNorm Compute v8
25 SendScalars CopyOut v8 <- 24
26 UpdateOnDevice Compute g0 [0,1024) v8 <- 21
27 StoreState CopyOut g0 [0,1024) v8 <- 26
28 FetchState CopyIn g1 [1024,2048) v8 <- 27
29 UpdateOnHost Host g0 [2048,3072) v8 <- 25
30 FetchWeights CopyIn g0 [2048,3072) v8 <- 29
31 UpdateOnDevice Compute g0 [1024,2048) v8 <- 22
32 StoreState CopyOut g0 [1024,2048) v8 <- 31
33 FetchState CopyIn g2 [0,1024) v8 <- 32
34 UpdateOnDevice Compute g1 [0,1024) v8 <- 23
35 StoreState CopyOut g1 [0,1024) v8 <- 34
36 FetchState CopyIn g2 [1024,2048) v8 <- 35
37 UpdateOnHost Host g1 [2048,3072) v8
38 FetchWeights CopyIn g1 [2048,3072) v8 <- 37
39 UpdateOnDevice Compute g1 [1024,2048) v8 <- 28
40 StoreState CopyOut g1 [1024,2048) v8 <- 39
41 UpdateOnDevice Compute g2 [0,1024) v8 <- 33
42 StoreState CopyOut g2 [0,1024) v8 <- 41
43 UpdateOnHost Host g2 [2048,3072) v8
44 FetchWeights CopyIn g2 [2048,3072) v8 <- 43
45 UpdateOnDevice Compute g2 [1024,2048) v8 <- 36
46 StoreState CopyOut g2 [1024,2048) v8 <- 45
)"));
        QCOMPARE(built.value().out.pending.size(), std::size_t{3});
    }

    void zeroOffloadLate()
    {
        const OffloadPolicy policy = policyWith("zero-offload", {{"late", "0.75"}});
        const Carry left = step7(policy, 1, 1).out;
        Result<BuiltStep> built =
            buildPlan(specOf(8, 1), left, smallShape(1), endless(), {}, policy);

        QVERIFY(built.ok());
        QCOMPARE(textOf(built.value().plan), QStringLiteral(R"(
0 FetchBatch CopyIn m0 v8
1 UpdateOnHost Host g0 [1024,4096) v7
2 FetchWeights CopyIn g0 [1024,4096) v7 <- 1
3 UpdateOnHost Host g1 [1024,4096) v7
4 FetchWeights CopyIn g1 [1024,4096) v7 <- 3
5 UpdateOnHost Host g2 [1024,4096) v7
6 FetchWeights CopyIn g2 [1024,4096) v7 <- 5
7 Forward Compute g0 m0 [0,4096) v7 <- 2
8 Forward Compute g1 m0 [0,4096) v7 <- 4
9 Backward Compute g2 m0 [0,4096) v7 <- 6
10 FinishGradient Compute g2 [0,4096) v8
11 SendGradient CopyOut g2 [0,4096) v8 <- 10
12 NormPart Compute g2 [0,4096) v8
13 Backward Compute g1 m0 [0,4096) v7
14 FinishGradient Compute g1 [0,4096) v8
15 SendGradient CopyOut g1 [0,4096) v8 <- 14
16 NormPart Compute g1 [0,4096) v8
17 Backward Compute g0 m0 [0,4096) v7
18 FinishGradient Compute g0 [0,4096) v8
19 SendGradient CopyOut g0 [0,4096) v8 <- 18
20 NormPart Compute g0 [0,4096) v8
21 JoinNorm Compute v8
22 SendScalars CopyOut v8 <- 21
23 UpdateOnHost Host g0 [0,1024) v8 <- 22
24 FetchWeights CopyIn g0 [0,1024) v8 <- 23
25 UpdateOnHost Host g1 [0,1024) v8
26 FetchWeights CopyIn g1 [0,1024) v8 <- 25
27 UpdateOnHost Host g2 [0,1024) v8
28 FetchWeights CopyIn g2 [0,1024) v8 <- 27
)"));
    }
};

MR_TEST(TestPlanText)

} // namespace mr::test::tst_plan_text

#include "tst_plan_text.moc"
