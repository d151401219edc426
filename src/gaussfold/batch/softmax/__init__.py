"""The Gaussian nearest to a softmax's posterior from all rows at once, and the width of its prior by leave-one-out.

Weights θ_k of K classes have the prior N(μ₀, diag(s²)); the latents of row i are f_ik = x_i'θ_k. The optimum of

    F(q) = Σ w_i E_q log p(y_i | f_i) - KL(q ‖ prior)

has, rvga (3)-(4), the precision ``Λ₀ + Σ w_i x_i x_i' ⊗ B_i``, ``B = E[diag(p) - pp']``, and a mean where ``Λ₀(μ - μ₀)
= Σ w_i x_i ⊗ (e_y - E p)``. A block-diagonal Gaussian (`blocks`) sees the diagonal b of B only, E[p_k z_k]/s_k by
Stein's lemma; `joint` all of it. A step sets the precision and moves the mean by Newton's method, less far where F
falls.

Without its own site row i sees the latents as N(m - V J, V), ``V⁻¹ = C⁻¹ - w B``, ``J = w (e_y - E p)``, N(m, C) being
its marginal: the log predictive densities there add up to the leave-one-out score by which a width is judged. F itself
prefers narrow priors, since its gap to the evidence grows with the width wherever classes can be separated.
"""

from gaussfold.batch.softmax.blocks import Blocks
from gaussfold.batch.softmax.joint import Joint
from gaussfold.batch.softmax.optimum import best_width, optimum
from gaussfold.batch.softmax.rows import ClassRows

__all__ = ["Blocks", "ClassRows", "Joint", "best_width", "optimum"]
