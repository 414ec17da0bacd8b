"""Design: every layer that a workload allows, planned together, in one plan."""

from __future__ import annotations

from fanplan.layers.delivery.design import Designing
from fanplan.layers.delivery.fixed import fixed_plans
from fanplan.layers.delivery.params import DesignParams
from fanplan.layers.delivery.steps import step_savings
from fanplan.plan.made import Job, Planned


def plan_design(job: Job, params: DesignParams) -> Planned:
    """Plan every layer that the workload allows, each knowing what the others cost."""
    plans = fixed_plans(job.dataset, dict(params.fixed))
    sections, delivery = Designing(job, params, plans).design()
    record = delivery.record
    figures = record.model_dump() | {
        "layers": [section.layer for section in sections],
        "steps": step_savings(record.steps),
    }
    return Planned(sections, figures, ended=job.watch.ended)


PLANS = {"design": plan_design}
