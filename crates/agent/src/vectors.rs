//! Vector registers around a call of Rust code, which is compiled for the base of x86_64 and leaves their upper halves alone. Text for assembly.

/// Aligns the stack, and puts the lower halves there: 256 bytes.
macro_rules! save {
    () => {
        concat!(
            "and rsp, -16\n",
            "sub rsp, 256\n",
            "movaps [rsp], xmm0\nmovaps [rsp+16], xmm1\nmovaps [rsp+32], xmm2\nmovaps [rsp+48], xmm3\n",
            "movaps [rsp+64], xmm4\nmovaps [rsp+80], xmm5\nmovaps [rsp+96], xmm6\nmovaps [rsp+112], xmm7\n",
            "movaps [rsp+128], xmm8\nmovaps [rsp+144], xmm9\nmovaps [rsp+160], xmm10\nmovaps [rsp+176], xmm11\n",
            "movaps [rsp+192], xmm12\nmovaps [rsp+208], xmm13\nmovaps [rsp+224], xmm14\nmovaps [rsp+240], xmm15\n",
        )
    };
}

/// Gets them back. The stack pointer stays.
macro_rules! restore {
    () => {
        concat!(
            "movaps xmm0, [rsp]\nmovaps xmm1, [rsp+16]\nmovaps xmm2, [rsp+32]\nmovaps xmm3, [rsp+48]\n",
            "movaps xmm4, [rsp+64]\nmovaps xmm5, [rsp+80]\nmovaps xmm6, [rsp+96]\nmovaps xmm7, [rsp+112]\n",
            "movaps xmm8, [rsp+128]\nmovaps xmm9, [rsp+144]\nmovaps xmm10, [rsp+160]\nmovaps xmm11, [rsp+176]\n",
            "movaps xmm12, [rsp+192]\nmovaps xmm13, [rsp+208]\nmovaps xmm14, [rsp+224]\nmovaps xmm15, [rsp+240]\n",
        )
    };
}

pub(crate) use {restore, save};
