"""Markowitz' portfolios: least variance, tangency, the efficient frontier, and a back-test."""

import numpy as np

SIZES = {"small": (30, 4), "normal": (1000, 30)}  # days, assets


def inputs(size="normal"):
    days, assets = SIZES[size]
    rng = np.random.default_rng(25)
    mix = rng.normal(size=(assets, assets)) / assets
    return (0.0005 + 0.01 * (rng.normal(size=(days, assets)) @ (np.eye(assets) + mix)),)


def run(returns, risk_free=0.0001, points=15):
    mu = returns.mean(axis=0)
    cov = np.cov(returns.T)
    ones = np.ones(len(mu))
    inv = np.linalg.inv(cov)
    min_var = inv @ ones / (ones @ inv @ ones)
    tangency = inv @ (mu - risk_free)
    tangency /= tangency.sum()

    a, b, c = ones @ inv @ ones, ones @ inv @ mu, mu @ inv @ mu
    targets = np.linspace(mu.min(), mu.max(), points)
    frontier = np.sqrt((a * targets**2 - 2 * b * targets + c) / (a * c - b**2))

    daily = returns @ min_var
    wealth = np.cumprod(1 + daily)
    drawdown = 1 - wealth / np.maximum.accumulate(wealth)
    stats = {"sharpe": np.sqrt(252) * daily.mean() / daily.std(ddof=1),
             "max_drawdown": drawdown.max(), "value_at_risk": -np.quantile(daily, 0.05)}
    return min_var, tangency, np.column_stack([targets, frontier]), stats
