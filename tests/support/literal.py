"""The paper's equations, transcribed to be read beside them. Slow on purpose; imports nothing.

Names are the paper's. A bin B_s^j is the tuple of its sides ("01" → (0, 1)), s = len(B). The log
holds one entry per user: the population m and the (Ṽ, Ũ) that this user sent for each cell. Every
sum is taken anew from that log, as the paper writes it.
"""

from functools import lru_cache
from math import exp, floor, log, log2, sqrt


class Literal:
    """Algorithm 3; with M = 0 auxiliary populations it must be Algorithm 2."""

    def __init__(self, *, K, d, epsilon, n, c):
        self.K, self.d, self.epsilon, self.n_m, self.c = K, d, epsilon, n, c
        self.M = len(epsilon) - 1
        self.n = max(n)  # n = n_P ∨ max n_Qm
        # Initialization: B_1 = {[0,1]^d}, A = [K]
        self.B_t = [()]
        self.A = {(): list(range(K))}
        self.box = {(): [(0.0, 1.0)] * d}
        self.log = []
        # Each sum is taken once per user, then remembered until the next one.
        self.t, self.sum_V, self.sum_U = map(lru_cache, (self.t, self.sum_V, self.sum_U))

    # --- what a user's data adds -------------------------------------------------------------

    def user(self, m, values):
        """One user of population m; values[B, k] = (Ṽ, Ũ) for the cells that this user updates."""
        for remembered in (self.t, self.sum_V, self.sum_U):
            remembered.cache_clear()
        self.log.append((m, {cell: pair for cell, pair in values.items() if cell[0] in self.B_t}))

    # --- the sums: a_i = 1 if Z_i is used to update B ------------------------------------------

    def t(self, m, B):
        """t_s^{m,j} = Σ_i a_{i,s}^{m,j}."""
        return sum(
            any(cell[0] == B for cell in values)
            for population, values in self.log
            if population == m
        )

    def sum_V(self, m, B, k):
        return sum(values[B, k][0] for i, values in self.log if i == m and (B, k) in values)

    def sum_U(self, m, B, k):
        return sum(values[B, k][1] for i, values in self.log if i == m and (B, k) in values)

    # --- eq. lamdaratios ------------------------------------------------------------------------

    def enough(self, m, B):
        return self.t(m, B) >= log(self.n) ** 2

    def lamda(self, m, B, k):
        indicator = 1 if self.enough(m, B) else 0
        if indicator == 0:
            return 0.0
        return min(abs(self.epsilon[m] ** 2 / self.t(m, B) * self.sum_U(m, B, k)), indicator)

    # --- eq. privateestimatormulti --------------------------------------------------------------

    def numerator_f(self, B, k):
        return sum(self.lamda(m, B, k) * self.sum_V(m, B, k) for m in range(self.M + 1))

    def denominator(self, B, k):
        return sum(self.lamda(m, B, k) * self.sum_U(m, B, k) for m in range(self.M + 1))

    def f(self, B, k):
        return over(self.numerator_f(B, k), self.denominator(B, k))

    # --- eq. rkj --------------------------------------------------------------------------------

    def C_n(self):
        return self.c * log(self.n)

    def numerator_r(self, B, k):
        return sum(
            self.lamda(m, B, k) ** 2
            * max(self.epsilon[m] ** -2 * self.t(m, B), self.sum_U(m, B, k))
            for m in range(self.M + 1)
        )

    def r(self, B, k):
        return sqrt(over(self.C_n() * self.numerator_r(B, k), self.denominator(B, k) ** 2))

    # --- eq. choiceoftaus, eq. updaterule ---------------------------------------------------------

    def tau(self, B):
        return 2 * sqrt(self.d) * 2 ** (-len(B) / self.d)

    def band(self, B, k):
        return 2 * self.r(B, k)

    def beaten(self, B, k_star):
        return any(
            self.r(B, k) > 0
            and self.r(B, k_star) > 0
            and self.f(B, k) - self.band(B, k) > self.f(B, k_star) + self.band(B, k_star)
            for k in self.A[B]
            if k != k_star
        )

    def refine(self, B):
        """r < τ_s for some k ∈ A, where r = 0/0 = 0 ("too few users") does not count."""
        return any(0 < self.r(B, k) < self.tau(B) for k in self.A[B])

    # --- the loop over bins, after each user or batch ---------------------------------------------

    def step(self, choose_axis):
        """choose_axis(B, M_sj) draws k* from the longest edges: Algorithm 1, line 1."""
        for B in list(self.B_t):
            losers = [k for k in self.A[B] if self.beaten(B, k)]
            self.A[B] = [k for k in self.A[B] if k not in losers]
            if self.refine(B):
                edges = [b - a for a, b in self.box[B]]
                axis = choose_axis(B, [k for k in range(self.d) if edges[k] == max(edges)])
                a, b = self.box[B][axis]
                for side, edge in ((0, (a, (a + b) / 2)), (1, ((a + b) / 2, b))):
                    child = (*B, side)
                    self.box[child] = [*self.box[B][:axis], edge, *self.box[B][axis + 1 :]]
                    self.A[child] = list(self.A[B])
                    self.B_t.append(child)
                self.B_t.remove(B)

    def contested(self):
        """The bins where something is left to decide, with their live arms."""
        return {B: self.A[B] for B in self.B_t if len(self.A[B]) > 1}


class LiteralAlgorithm2(Literal):
    """Algorithm 2 by itself: no weights, one population."""

    def f(self, B, k):
        """Eq. privateestimatorP."""
        return over(self.sum_V(0, B, k), self.sum_U(0, B, k))

    def r(self, B, k):
        """Eq. rkjofP, for t ≥ log² n; before that no bin is judged."""
        if not self.enough(0, B):
            return 0.0
        noise = max(self.epsilon[0] ** -2 * self.t(0, B), self.sum_U(0, B, k))
        return sqrt(over(self.C_n() * noise, self.sum_U(0, B, k) ** 2))


class LiteralAuthors(Literal):
    """The same with the constants of the authors' code (see estimate/ldpmab/constants.py)."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self.n = max(n * min(1, e) ** 2 for n, e in zip(self.n_m, self.epsilon, strict=True))
        self.sums = {}  # the sums of running sums

    def step(self, choose_axis, reported):
        for B in self.B_t:
            for k in self.A[B]:
                sums = self.sums.setdefault((B, k), [0.0, 0.0, 0.0])
                for m in reported:
                    lamda = self.lamda(m, B, k)
                    sums[0] += lamda * self.sum_V(m, B, k)
                    sums[1] += lamda * self.sum_U(m, B, k)
                    noise = max(self.epsilon[m] ** -2 * self.t(m, B), self.sum_U(m, B, k))
                    sums[2] += lamda**2 * noise
        super().step(choose_axis)

    def enough(self, m, B):
        return self.t(m, B) > 0 and self.t(m, B) >= floor(log2(self.n)) ** 2

    def numerator_f(self, B, k):
        return self.sums[B, k][0]

    def denominator(self, B, k):
        return self.sums[B, k][1]

    def numerator_r(self, B, k):
        return self.sums[B, k][2]

    def f(self, B, k):
        return min(max(super().f(B, k), 0.0), 1.0)

    def tau(self, B):
        return 2 ** (-len(B) / self.d)

    def band(self, B, k):
        return max(self.r(B, k), self.tau(B))

    def pi(self, B):
        """The chance of each live arm; a bin that was just cut out begins with even chances."""
        scores = [self.f(B, k) if (B, k) in self.sums else 0.0 for k in self.A[B]]
        difference = max(scores) - min(scores)
        if difference < 0.01:
            return [1 / len(scores)] * len(scores)
        weights = [exp(score * log(1.2 * self.K / len(scores)) / difference) for score in scores]
        return [weight / sum(weights) for weight in weights]

    def depth(self):
        return int(
            max(
                min(
                    log2(2 * n * (self.M + 1)) * self.d / (2 + self.d),
                    log2(2 * n * e**2 * (self.M + 1)) * self.d / (2 + 2 * self.d),
                )
                for n, e in zip(self.n_m, self.epsilon, strict=True)
            )
        )

    def refine(self, B):
        return len(B) < self.depth() and all(0 < self.r(B, k) < self.tau(B) for k in self.A[B])


def over(a, b):
    """a/b with 0/0 = 0."""
    return 0.0 if b == 0 else a / b
